
-- Charge: counts units admitted without a reservation, regardless of the limit, each in the bucket of its own time.
--
-- KEYS[1]  the window
-- ARGV     window.lua's, then for each entry: age ms, units
-- Returns  the units counted afterwards
local window = KEYS[1]
local epoch, used, oldest, newest, holdEnd, changed = open(window, true, 11, 10)
local charged = 0
for i = 11, #ARGV, 2 do
  local bucket, units = math.min(math.floor((now - ARGV[i]) / bucketMs), latest), tonumber(ARGV[i + 1])
  charged = charged + units
  if units > 0 and bucket > expired then
    local isNew = call('HINCRBY', window, bucket, units) == units
    used, newest = used + units, math.max(newest, bucket)
    oldest = oldest == 0 and bucket or math.min(oldest, bucket)
    changed = true
    if isNew then
      expireAfter(window, newest)
    end
  end
end
if changed then
  call('HSET', window, 'head', string.format(HEAD_FORMAT, epoch, used, oldest, newest, holdEnd))
end
-- Not in the hour in which they were admitted: it may be closed. Last, because a charge that fails above is sent again.
addToHistory(window, thisHour, charged)
return used
