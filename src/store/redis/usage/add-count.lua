-- Adds refusals to a customer's day, if the customer exists. KEYS[1] the customer's record, KEYS[2] the hash of the day;
-- ARGV[1] when the day expires in Unix ms, then field, count, field, count, … Keys of other types are left alone.
local plan = redis.pcall('HGET', KEYS[1], 'plan')
if type(plan) ~= 'string' then
  return
end
for i = 2, #ARGV, 2 do
  redis.pcall('HINCRBY', KEYS[2], ARGV[i], ARGV[i + 1])
end
call('PEXPIREAT', KEYS[2], ARGV[1])
