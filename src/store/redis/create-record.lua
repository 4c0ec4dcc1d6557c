-- Writes a record unless there is one. KEYS[1] the hash; ARGV field, value, field, value, …
-- Returns 1 if it was written, 0 if the key holds a record already.
if redis.call('HLEN', KEYS[1]) > 0 then
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
