-- Deletes a customer without keys. KEYS[1] the set of its keys, KEYS[2] its record, then everything else of the customer.
-- Leaves a record with the field `deleting` alone: it has no plan, so no reader finds it, and no id can be created twice.
-- Returns 1, or 0 when the customer has a key.
if call('SCARD', KEYS[1]) > 0 then
  return 0
end
call('DEL', unpack(KEYS, 2))
call('HSET', KEYS[2], 'deleting', 1)
return 1
