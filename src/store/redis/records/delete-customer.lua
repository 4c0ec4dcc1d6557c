-- Deletes a customer without keys. KEYS[1] its record, KEYS[2] its window, KEYS[3] the set of its keys,
-- KEYS[4] its notices.
-- Returns 1, or 0 when the customer has a key.
if redis.call('SCARD', KEYS[3]) > 0 then
  return 0
end
redis.call('DEL', KEYS[1], KEYS[2], KEYS[4])
return 1
