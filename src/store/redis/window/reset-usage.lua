-- Resets a customer's usage. KEYS[1] its window, KEYS[2] its record; ARGV[1] the time, then field names.
-- Returns the resulting values of those fields of the record. Does not create a missing record.
-- The record is written first: if it has a wrong type, the script fails before it deletes the window.
if redis.call('HGET', KEYS[2], 'plan') then
  redis.call('HSET', KEYS[2], 'usage_reset_at', ARGV[1])
end
local record = redis.call('HMGET', KEYS[2], unpack(ARGV, 2))
redis.call('DEL', KEYS[1])
return record
