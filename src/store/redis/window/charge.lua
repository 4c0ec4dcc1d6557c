
-- Charge: counts units admitted without a reservation, regardless of the limit, each in the bucket of its own time. Units of
-- an id that is known are not counted again.
--
-- KEYS[1]  the window
-- ARGV     window.lua's, then the anchor of the period or '', its terms without the end, and for each entry: its id, age
--          ms, units
-- Returns  the store time in ms, and the units counted afterwards; with a period its units, those forgiven, its first hour
--          and its end hour, too
local window = KEYS[1]
customer = string.sub(window, prefixEnd + 8)
grants = grantsPrefix .. customer
anchor, included = ARGV[11], ARGV[12]
local hasPeriod = anchor ~= ''
if hasPeriod then
  definePeriods()
  readPeriod()
end
local epoch, used, oldest, newest, holdEnd, changed = open(window, 1, 11, 10)
for i = 13, #ARGV, 3 do
  local id, bucket, units = ARGV[i], math.min(math.floor((now - ARGV[i + 1]) / bucketMs), latest), tonumber(ARGV[i + 2])
  if not call('HGET', grants, id) then
    if units > 0 and bucket > expired then
      local isNew = call('HINCRBY', window, bucket, units) == units
      used, newest = used + units, math.max(newest, bucket)
      oldest = oldest == 0 and bucket or math.min(oldest, bucket)
      changed = true
      if isNew then
        expireAfter(window, newest)
      end
    end
    local counters = hasPeriod and epoch .. ' ' .. anchor or epoch
    call('HSET', grants, id, string.format(GRANT_FORMAT, units, thisHour, bucket, counters), KEPT, 1)
    call('PEXPIRE', grants, GRANTS_EXPIRE_MS)
    -- Not in the hour and the period in which they were admitted: they may be closed.
    addToHistory(thisHour, units)
    if hasPeriod and units > 0 then
      countInPeriod(units)
    end
  end
end
if changed then
  call('HSET', window, 'head', string.format(HEAD_FORMAT, epoch, used, oldest, newest, holdEnd))
end
return hasPeriod and { now, used, unitsInPeriod, forgiven, starts, ends } or { now, used }
