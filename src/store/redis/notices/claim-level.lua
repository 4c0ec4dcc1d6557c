-- Claims the reached level of a customer and those below it, and stores a notice if the reached one was armed.
-- ../../level-claims.ts must give the same results.
--
-- KEYS[1]  the customer's notices: a hash with the fields `level:<percent>` (`<limit> <claimed at, ms> <1: usage fell>
--          <former limit or 0>`), `notice:<id>` (its content) and `mark:<mark>` (store time until which it counts)
-- ARGV     id and content of the notice, limit, reached level, then all levels
-- Returns  1 if the notice was stored, else 0
local REARM_MS = 3600000
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, reached = ARGV[3], tonumber(ARGV[4])
local isNew = 0
for i = 5, #ARGV do
  local level, field = tonumber(ARGV[i]), 'level:' .. ARGV[i]
  if level <= reached then
    local claimed, at, fell, former = string.match(call('HGET', KEYS[1], field) or '', '^(%d+) (%d+) ([01]) (%d+)$')
    local isOld = math.abs(now - (at or 0)) >= REARM_MS
    local isSame = claimed == limit
    if isSame and fell == '1' and isOld or not isSame and (former ~= limit or isOld) then
      call('HSET', KEYS[1], field, string.format('%s %.0f 0 %s', limit, now, isSame and former or claimed or 0))
      if level == reached then
        isNew = 1
      end
    end
  end
end
if isNew == 1 then
  call('HSET', KEYS[1], 'notice:' .. ARGV[1], ARGV[2])
end
return isNew
