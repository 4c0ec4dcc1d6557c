-- Refund: units of a lease return to the buckets they were counted in. For the algorithm see ../window-arithmetic.ts.
--
-- KEYS[1]  the window, in the form of window.lua
-- ARGV     for each refund: epoch, bucket, units
-- Returns  the refunded units: none for another epoch or a dropped bucket, at most what a bucket holds
local call = redis.call
local window = KEYS[1]

local head = call('HGET', window, 'head')
if not head then
  return 0
end
local epoch, used, oldest, rest = string.match(head, '^(%S+) (%d+) (%d+) (%d+ %d+)$')
if not epoch then
  return redis.error_reply('ERR the head of this window is not one of Tollgate')
end

local returned = 0
for i = 1, #ARGV, 3 do
  local bucket, units = ARGV[i + 1], tonumber(ARGV[i + 2])
  local counted = ARGV[i] == epoch and units > 0 and tonumber(call('HGET', window, bucket))
  if counted then
    if units < counted then
      call('HINCRBY', window, bucket, -units)
    else
      units = counted
      call('HDEL', window, bucket)
      if bucket == oldest then
        oldest = '0'
      end
    end
    returned = returned + units
  end
end
if returned > 0 then
  call('HSET', window, 'head', string.format('%s %.0f %s %s', epoch, used - returned, oldest, rest))
end
return returned
