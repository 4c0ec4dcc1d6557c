-- Notes which claimed levels a customer's usage fell below, and deletes the claims that are over.
-- ../../level-claims.ts must give the same results.
--
-- KEYS[1]  the customer's notices: see claim-level.lua
-- ARGV     used, limit; both 0: the customer has no limit any more, and all claims are deleted
-- Returns  the ms until the next look, or -1 if no claim is left
local REARM_MS, REARM_POINTS, WATCH_MS = 3600000, 10, 60000
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local used, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local wait = -1
local fields = call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local level = tonumber(string.match(fields[i], '^level:(%d+)$'))
  if level then
    local claimed, at, fell, former = string.match(fields[i + 1], '^(%d+) (%d+) ([01]) (%d+)$')
    local age = math.abs(now - (at or 0))
    if fell == '0' and used * 100 <= math.max(0, level - REARM_POINTS) * limit then
      fell = '1'
      call('HSET', KEYS[1], fields[i], string.format('%s %s 1 %s', claimed, at, former))
    end
    if not claimed or limit == 0 or (fell == '1' and age >= REARM_MS) then
      call('HDEL', KEYS[1], fields[i])
    else
      local untilNext = fell == '1' and REARM_MS - age or WATCH_MS
      wait = wait < 0 and untilNext or math.min(wait, untilNext)
    end
  end
end
return wait
