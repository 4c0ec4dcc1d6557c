
-- Reserve: one atomic check and count.
--
-- ARGV     window.lua's, then need, ahead, limit, hold ms, then for each refund: epoch, bucket, units
-- Returns  granted, free, used, wait ms (-1: never), bucket, epoch, store time ms, end of the last hold ms
local AHEAD_DIVISOR = 8
-- In a small hash, Redis finds the first fields quickly and later ones ever more slowly. The oldest buckets come first.
-- So a few buckets are read by name; for more, reading the whole hash costs less.
local NEAR_CHUNK, NEAR_CHUNKS = 32, 2

local need, ahead, limit, holdMs = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

for i = 8, #ARGV, 3 do
  local bucket, units = ARGV[i + 1], tonumber(ARGV[i + 2])
  local counted = ARGV[i] == epoch and units > 0 and tonumber(call('HGET', window, bucket))
  if counted then
    if units < counted then
      call('HINCRBY', window, bucket, -units)
    else
      units = counted
      call('HDEL', window, bucket)
      if tonumber(bucket) == oldest then
        oldest = 0
      end
    end
    used = used - units
    changed = true
  end
end
dropExpired()

local available = math.max(0, limit - used)
local needed = math.min(need, available)
local granted = needed + math.min(ahead, math.floor((available - needed) / AHEAD_DIVISOR))
local bucket = math.floor((now + holdMs) / bucketMs)
if granted > 0 then
  add(bucket, granted)
  holdEnd = math.max(holdEnd, now + holdMs)
end
save()

-- Returns the units of NEAR_CHUNK buckets from `first` on, in order; false for a missing bucket.
local function nearUnits(first)
  local indices = {}
  for i = 1, NEAR_CHUNK do
    indices[i] = first + i - 1
  end
  return call('HMGET', window, unpack(indices))
end

local function waitUntilMoreFree()
  if used == 0 or limit == 0 then
    return -1
  end
  local toDrop = used - limit + 1
  if toDrop <= 1 or toDrop <= tonumber(call('HGET', window, oldest) or 0) then
    return dropTime(oldest) - now
  end
  local far = oldest + NEAR_CHUNKS * NEAR_CHUNK
  for first = oldest, far - 1, NEAR_CHUNK do
    for i, units in ipairs(nearUnits(first)) do
      toDrop = toDrop - (tonumber(units) or 0)
      if toDrop <= 0 then
        return dropTime(first + i - 1) - now
      end
    end
  end
  local units = allUnits()
  for bucket = far, newest do
    toDrop = toDrop - (units[bucket] or 0)
    if toDrop <= 0 then
      return dropTime(bucket) - now
    end
  end
  return -1
end

return { granted, available - granted, used, waitUntilMoreFree(), bucket, epoch, now, holdEnd }
