-- Sets a key's replacement and the end of its grace period, unless it is revoked, replaced or has another expiry.
-- KEYS[1] the key's hash; ARGV[1] the key's id, ARGV[2] the expected expiry (empty: none), ARGV[3] the replacement's
-- id, ARGV[4] the end of the grace period, then field names.
-- Returns 1 if the key was changed, else 0, and the resulting values of those fields; nil when the id differs.
local function held(field)
  return call('HGET', KEYS[1], field) or ''
end
if held('id') ~= ARGV[1] then
  return false
end
local retired = 0
if held('revoked_at') == '' and held('replaced_by') == '' and held('expires_at') == ARGV[2] then
  call('HSET', KEYS[1], 'replaced_by', ARGV[3], 'expires_at', ARGV[4])
  retired = 1
end
return { retired, call('HMGET', KEYS[1], unpack(ARGV, 5)) }
