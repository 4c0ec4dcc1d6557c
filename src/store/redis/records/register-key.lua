-- Adds a key to the set of its customer, if the customer exists. KEYS[1] the customer's record, KEYS[2] the set of its
-- keys; ARGV[1] the key's id. Returns 1, or 0 when there is no such customer.
if not call('HGET', KEYS[1], 'plan') then
  return 0
end
call('SADD', KEYS[2], ARGV[1])
return 1
