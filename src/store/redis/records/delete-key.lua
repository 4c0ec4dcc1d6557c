-- Deletes a key's record. KEYS[1] the hash; ARGV[1] the key's id, ARGV[2] its customer.
-- Returns 1, or 0 when the record has another id or customer.
if call('HGET', KEYS[1], 'id') ~= ARGV[1] or call('HGET', KEYS[1], 'customer') ~= ARGV[2] then
  return 0
end
return call('DEL', KEYS[1])
