-- Sets the secret that signs a customer's notices. KEYS[1] the customer's record, KEYS[2] its secret, KEYS[3] the former
-- one; ARGV[1] the new secret, ARGV[2] how long the former one stays in force, in ms.
-- Returns 1, 0 if there was no secret before, or -1 if there is no such customer.
if not call('HGET', KEYS[1], 'plan') then
  return -1
end
local former = call('GET', KEYS[2])
if former then
  call('SET', KEYS[3], former, 'PX', ARGV[2])
end
call('SET', KEYS[2], ARGV[1])
return former and 1 or 0
