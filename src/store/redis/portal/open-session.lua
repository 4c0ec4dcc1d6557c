-- Takes away the code of a link, and puts its session under a cookie. KEYS[1] the customer's portal sessions (see
-- add-session.lua); ARGV[1] SHA-256 of the code, ARGV[2] SHA-256 of the cookie.
-- Returns how long the session lasts in ms, and the session; nothing if there is no such code any more.
local stored = call('HGET', KEYS[1], ARGV[1])
local ends, sessionEnds, session = string.match(stored or '', '^(%d+) code (%d+) (.*)$')
if not ends then
  return false
end
call('HDEL', KEYS[1], ARGV[1])
if tonumber(ends) <= now then
  return false
end
call('HSET', KEYS[1], ARGV[2], sessionEnds .. ' cookie ' .. sessionEnds .. ' ' .. session)
return { sessionEnds - now, session }
