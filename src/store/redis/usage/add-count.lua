-- Adds to a count of a customer, if the customer exists. KEYS[1] the customer's record, KEYS[2] the hash with the count; ARGV
-- when the hash expires in Unix ms, field, count. Keys of other types are left alone.
local plan = redis.pcall('HGET', KEYS[1], 'plan')
if type(plan) ~= 'string' then
  return
end
redis.pcall('HINCRBY', KEYS[2], ARGV[2], ARGV[3])
call('PEXPIREAT', KEYS[2], ARGV[1])
