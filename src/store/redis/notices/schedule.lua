-- Adds a member to an index, or moves it.
--
-- KEYS[1]  the index: a sorted set, by store time in ms
-- ARGV     member, in how many ms it is due, 1 to keep the time of a member that is there
local due = string.format('%.0f', now + ARGV[2])
if ARGV[3] == '1' then
  return call('ZADD', KEYS[1], 'NX', due, ARGV[1])
end
return call('ZADD', KEYS[1], due, ARGV[1])
