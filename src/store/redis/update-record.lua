-- Changes fields of a record that is there. KEYS[1] the hash; ARGV[1] a field that the record must have, ARGV[2] what it
-- must hold (empty: anything), ARGV[3] the number of changes, then field and value of each (an empty value unsets), then
-- field names. Returns the values of those fields as they are afterwards, or nil when the record is not there.
local held = redis.call('HGET', KEYS[1], ARGV[1])
if not held or held == '' or (ARGV[2] ~= '' and ARGV[2] ~= held) then
  return false
end
local last = 3 + 2 * ARGV[3]
for i = 4, last, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[1], ARGV[i])
  else
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
return redis.call('HMGET', KEYS[1], unpack(ARGV, last + 1))
