-- Takes what is due from an index, and hides it from others for a while.
--
-- KEYS[1]  the index: a sorted set, by store time in ms
-- ARGV     how many at most, how long they are hidden in ms
-- Returns  the members
local members = call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now), 'LIMIT', 0, ARGV[1])
for _, member in ipairs(members) do
  call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), member)
end
return members
