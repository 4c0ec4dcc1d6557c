-- Reserve: one atomic check and count on one customer's hourly window.
-- The algorithm, and why it holds, is told in ../window-arithmetic.ts, which must give the same answers.
--
-- KEYS[1]  the window: a hash with one field per bucket (index -> units) and the field `head`
--          (`<epoch> <used> <oldest bucket or 0> <newest bucket> <end of the last hold>`)
-- ARGV     need, ahead, limit, hold ms, fresh epoch, window ms, bucket ms, then for each give-back: epoch, bucket, units
-- Returns  granted, free, used, wait ms (-1: never), bucket, epoch, store time ms, end of the last hold ms
local MAX_HOLD_MS = 10000
local CLOCK_STEP_TOLERANCE_MS = 60000
local MAX_STEPS = 16
local AHEAD_DIVISOR = 8
local HEAD_FORMAT = '%s %.0f %.0f %.0f %.0f'

local call = redis.call
local window = KEYS[1]
local need, ahead, limit, holdMs = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local freshEpoch, windowMs, bucketMs = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local latest = math.floor((now + MAX_HOLD_MS) / bucketMs)
local farthest = latest + math.ceil(CLOCK_STEP_TOLERANCE_MS / bucketMs)

local epoch, used, oldest, newest, holdEnd = freshEpoch, 0, 0, 0, 0
local changed = false

local head = call('HGET', window, 'head')
if head then
  local e, u, o, n, h = string.match(head, '^(%S+) (%d+) (%d+) (%d+) (%d+)$')
  if not e then
    return redis.error_reply('ERR the head of this window is not one of Tollgate')
  end
  epoch, used, oldest, newest, holdEnd = e, tonumber(u), tonumber(o), tonumber(n), tonumber(h)
end

local function dropTime(bucket)
  return (bucket + 1) * bucketMs + windowMs
end

local function count(bucket, units)
  used = used + units
  if oldest == 0 or bucket < oldest then
    oldest = bucket
  end
  if bucket > newest then
    newest = bucket
  end
end

-- Units by bucket index. Rare, because it reads the whole hash.
local function buckets()
  local fields, units = call('HGETALL', window), {}
  for i = 1, #fields, 2 do
    local bucket = tonumber(fields[i])
    if bucket then
      units[bucket] = tonumber(fields[i + 1])
    end
  end
  return units
end

-- After a pause of more than MAX_STEPS buckets, or when the clock went back.
local function recount()
  used, oldest, newest = 0, 0, 0
  local folded = 0
  for bucket, units in pairs(buckets()) do
    if dropTime(bucket) <= now then
      call('HDEL', window, bucket)
    elseif bucket > farthest then
      call('HDEL', window, bucket)
      folded = folded + units
    else
      count(bucket, units)
    end
  end
  if folded > 0 then
    call('HINCRBY', window, latest, folded)
    count(latest, folded)
    epoch = freshEpoch
    holdEnd = math.min(holdEnd, now + MAX_HOLD_MS)
  end
end

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

if newest > farthest then
  recount()
  changed = true
end
if used > 0 and (oldest == 0 or dropTime(oldest) <= now) then
  changed = true
  local steps = 0
  while oldest > 0 and used > 0 and steps < MAX_STEPS do
    local units = call('HGET', window, oldest)
    if units then
      if dropTime(oldest) > now then
        break
      end
      call('HDEL', window, oldest)
      used = used - units
    end
    oldest = oldest + 1
    steps = steps + 1
  end
  if used > 0 and (oldest == 0 or steps >= MAX_STEPS) then
    recount()
  end
end
if used <= 0 then
  used, oldest = 0, 0
end

local available = math.max(0, limit - used)
local needed = math.min(need, available)
local granted = needed + math.min(ahead, math.floor((available - needed) / AHEAD_DIVISOR))
local bucket = math.floor((now + holdMs) / bucketMs)
if granted > 0 then
  local isNew = tonumber(call('HINCRBY', window, bucket, granted)) == granted
  count(bucket, granted)
  holdEnd = math.max(holdEnd, now + holdMs)
  if isNew then
    -- The whole key goes once its last bucket has been dropped for sure.
    call('PEXPIREAT', window, string.format('%.0f', dropTime(math.max(newest, latest) + 1)))
  end
  changed = true
end
if changed then
  call('HSET', window, 'head', string.format(HEAD_FORMAT, epoch, used, oldest, newest, holdEnd))
end

local function waitUntilMoreFree()
  if used == 0 or limit == 0 then
    return -1
  end
  local toDrop = used - limit + 1
  if toDrop <= 1 or toDrop <= tonumber(call('HGET', window, oldest) or 0) then
    return dropTime(oldest) - now
  end
  local units = buckets()
  for bucket = oldest, newest do
    toDrop = toDrop - (units[bucket] or 0)
    if toDrop <= 0 then
      return dropTime(bucket) - now
    end
  end
  return -1
end

return { granted, available - granted, used, waitUntilMoreFree(), bucket, epoch, now, holdEnd }
