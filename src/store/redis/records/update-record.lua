-- Changes fields of a hash, such as a record, if it has the expected values. KEYS[1] the hash; ARGV[1] the number of
-- expectations, then field and value of each, then the number of changes, then field and value of each (an empty value
-- means unset), then field names. Returns the resulting values of those fields, or nil when an expectation is not met.
local at = 2
for _ = 1, ARGV[1] do
  if (call('HGET', KEYS[1], ARGV[at]) or '') ~= ARGV[at + 1] then
    return false
  end
  at = at + 2
end
local changes = ARGV[at]
at = at + 1
for _ = 1, changes do
  if ARGV[at + 1] == '' then
    call('HDEL', KEYS[1], ARGV[at])
  else
    call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  end
  at = at + 2
end
return call('HMGET', KEYS[1], unpack(ARGV, at))
