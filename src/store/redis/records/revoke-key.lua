-- Sets `revoked_at` unless it is set. KEYS[1] the key's hash; ARGV[1] the key's id, ARGV[2] the time, then field names.
-- Returns the resulting values of those fields, or nil when the record has another id.
if call('HGET', KEYS[1], 'id') ~= ARGV[1] then
  return false
end
local revokedAt = call('HGET', KEYS[1], 'revoked_at')
if not revokedAt or revokedAt == '' then
  call('HSET', KEYS[1], 'revoked_at', ARGV[2])
end
return call('HMGET', KEYS[1], unpack(ARGV, 3))
