-- One customer's hourly window: the common beginning of reserve.lua and charge.lua, sent with each as one script.
-- For the algorithm and its proof see ../window-arithmetic.ts, which must give the same results.
--
-- KEYS[1]  the window: a hash with one field per bucket (index -> units) and the field `head`
--          (`<epoch> <used> <oldest bucket or 0> <newest bucket> <end of the last hold>`)
-- ARGV     window ms, bucket ms, fresh epoch, then the script's own
local MAX_HOLD_MS = 10000
local CLOCK_STEP_TOLERANCE_MS = 60000
local MAX_STEPS = 16
local HEAD_FORMAT = '%s %.0f %.0f %.0f %.0f'

local call = redis.call
local window = KEYS[1]
local windowMs, bucketMs, freshEpoch = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local latest = math.floor((now + MAX_HOLD_MS) / bucketMs)
local farthest = latest + math.ceil(CLOCK_STEP_TOLERANCE_MS / bucketMs)

local epoch, used, oldest, newest, holdEnd = freshEpoch, 0, 0, 0, 0
local changed, hasNewBucket = false, false

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

-- Returns units by bucket index. Called rarely, because it reads the whole hash.
local function allUnits()
  local fields, units = call('HGETALL', window), {}
  for i = 1, #fields, 2 do
    local bucket = tonumber(fields[i])
    if bucket then
      units[bucket] = tonumber(fields[i + 1])
    end
  end
  return units
end

-- Called when the oldest bucket is unknown, after a pause of more than MAX_STEPS buckets, or when the clock went back.
local function recount()
  used, oldest, newest = 0, 0, 0
  local folded = 0
  for bucket, units in pairs(allUnits()) do
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

local function dropExpired()
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
end

local function add(bucket, units)
  if tonumber(call('HINCRBY', window, bucket, units)) == units then
    hasNewBucket = true
  end
  count(bucket, units)
  changed = true
end

local function save()
  if changed then
    call('HSET', window, 'head', string.format(HEAD_FORMAT, epoch, used, oldest, newest, holdEnd))
  end
  if hasNewBucket then
    -- Redis deletes the whole key once its last bucket has certainly expired.
    call('PEXPIREAT', window, string.format('%.0f', dropTime(math.max(newest, latest) + 1)))
  end
end
