-- Gives a key its successor and the end of its grace, unless it was revoked, replaced or given another expiry before.
-- KEYS[1] the key's hash; ARGV[1] the key's id, ARGV[2] the expiry that it must have (empty: none), ARGV[3] the successor's
-- id, ARGV[4] the end of the grace, then field names. Returns 1 if that was done, else 0, and the values of those fields as
-- they are afterwards; nil when the record is not the one of that id.
local function held(field)
  return redis.call('HGET', KEYS[1], field) or ''
end
if held('id') ~= ARGV[1] then
  return false
end
local retired = 0
if held('revoked_at') == '' and held('replaced_by') == '' and held('expires_at') == ARGV[2] then
  redis.call('HSET', KEYS[1], 'replaced_by', ARGV[3], 'expires_at', ARGV[4])
  retired = 1
end
return { retired, redis.call('HMGET', KEYS[1], unpack(ARGV, 5)) }
