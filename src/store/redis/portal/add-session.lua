-- Adds a portal session. Deletes those that have ended, and of too many the one that would end first.
--
-- KEYS[1]  the customer's record
-- KEYS[2]  its portal sessions: a hash of `<end of the secret> <kind> <end of the session> <session>` by SHA-256; the ends
--          are store times in ms
-- ARGV     SHA-256, kind, how long the secret and the session last in ms, session; the most sessions of a customer, how
--          long a session can last in ms
-- Returns  1, or 0 if there is no such customer
if not call('HGET', KEYS[1], 'plan') then
  return 0
end
local stored = call('HGETALL', KEYS[2])
local kept = 0
local first, firstEnds
for i = 1, #stored, 2 do
  local ends = tonumber(string.match(stored[i + 1], '^%d+')) or 0
  if ends <= now then
    call('HDEL', KEYS[2], stored[i])
  else
    kept = kept + 1
    if not firstEnds or ends < firstEnds then
      first, firstEnds = stored[i], ends
    end
  end
end
if kept >= tonumber(ARGV[6]) then
  call('HDEL', KEYS[2], first)
end
local sessionEnds = now + ARGV[4]
local value = string.format('%.0f %s %.0f %s', math.min(now + ARGV[3], sessionEnds), ARGV[2], sessionEnds, ARGV[5])
call('HSET', KEYS[2], ARGV[1], value)
call('PEXPIRE', KEYS[2], ARGV[7])
return 1
