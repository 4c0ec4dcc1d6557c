-- Forgets what a customer used. KEYS[1] its window, KEYS[2] its record; ARGV[1] the time, then field names.
-- Returns the values of those fields of the record as they are afterwards. A record that is not there is not made.
-- The record comes first: when it is not what it must be, nothing is forgotten.
if redis.call('EXISTS', KEYS[2]) == 1 then
  redis.call('HSET', KEYS[2], 'usage_reset_at', ARGV[1])
end
local record = redis.call('HMGET', KEYS[2], unpack(ARGV, 2))
redis.call('DEL', KEYS[1])
return record
