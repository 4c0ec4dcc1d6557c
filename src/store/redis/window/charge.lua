
-- Charge: counts units admitted without a reservation, regardless of the limit, each in the bucket of its own time. Units of
-- an id that is known are not counted again.
--
-- KEYS[1]  the window
-- ARGV     window.lua's, then for each entry: its id, age ms, units
-- Returns  the units counted afterwards
local window = KEYS[1]
customer = string.sub(window, prefixEnd + 8)
grants = grantsPrefix .. customer
local epoch, used, oldest, newest, holdEnd, changed = open(window, 1, 11, 10)
for i = 11, #ARGV, 3 do
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
    call('HSET', grants, id, string.format(GRANT_FORMAT, units, thisHour, bucket, epoch), KEPT, 1)
    call('PEXPIRE', grants, GRANTS_EXPIRE_MS)
    -- Not in the hour in which they were admitted: it may be closed.
    addToHistory(thisHour, units)
  end
end
if changed then
  call('HSET', window, 'head', string.format(HEAD_FORMAT, epoch, used, oldest, newest, holdEnd))
end
return used
