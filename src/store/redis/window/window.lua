-- Hourly windows of customers: the common beginning of reserve.lua and charge.lua, sent with each as one script.
-- For the algorithm and its proof see ../../window-arithmetic.ts, which must give the same results.
--
-- KEYS     windows: each a hash with one field per bucket (index -> units) and the field `head`
--          (`<epoch> <used> <oldest bucket or 0> <newest bucket> <end of the last hold>`, where the epoch is
--          `<lineage>` or `<lineage>:<number>`)
-- ARGV     window ms, bucket ms, fresh epoch, days for which the history keeps hours (0: no history) and days; the hour by
--          the gateway's clock (since 1970) with its `:yyyymmdd`, `hh`, `:yyyy` and `mmdd`; then the script's own
--
-- Functions are few, and take and return what they change: to create one costs about as much as to look up a bucket.
local MAX_HOLD_MS = 10000
local CLOCK_STEP_TOLERANCE_MS = 60000
local MAX_STEPS = 16
local HEAD_FORMAT, HEAD_PATTERN = '%s %.0f %.0f %.0f %.0f', '^(%S+) (%d+) (%d+) (%d+) (%d+)$'
local NO_HEAD = 'the head of this window is not one of Tollgate'
local LINEAGE = '^[^:]+'

local windowMs, bucketMs, freshEpoch = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local hourRetentionDays, dayRetentionDays = tonumber(ARGV[4]), tonumber(ARGV[5])

local latest = math.floor((now + MAX_HOLD_MS) / bucketMs)
local farthest = latest + math.ceil(CLOCK_STEP_TOLERANCE_MS / bucketMs)
-- A bucket has expired if its index is at most this.
local expired = math.floor((now - windowMs) / bucketMs) - 1

local HOUR_MS, DAY_MS, HOUR_CLOSES_MS = 3600000, 86400000, 30000
local thisHour = math.floor(now / HOUR_MS)
local tryCall = redis.pcall
-- All windows have the same prefix.
local prefixEnd = string.find(KEYS[1], ':window:{', 1, true)
local prefix = prefixEnd and string.sub(KEYS[1], 1, prefixEnd)
local usagePrefix, usageDaysPrefix = prefix and prefix .. 'usage:', prefix and prefix .. 'usage-days:'

-- Returns the year, month and day of a day, given as the number of days since 1970-01-01. It counts years from March, so
-- that a leap day is the last one, in cycles of 400 years.
local function dateOf(day)
  local fromMarch = day + 719468
  local cycle = math.floor(fromMarch / 146097)
  local dayOfCycle = fromMarch - cycle * 146097
  local leapDays = math.floor(dayOfCycle / 1460) - math.floor(dayOfCycle / 36524) + math.floor(dayOfCycle / 146096)
  local yearOfCycle = math.floor((dayOfCycle - leapDays) / 365)
  local dayOfYear = dayOfCycle - 365 * yearOfCycle - math.floor(yearOfCycle / 4) + math.floor(yearOfCycle / 100)
  local month = math.floor((5 * dayOfYear + 2) / 153)
  local dayOfMonth = dayOfYear - math.floor((153 * month + 2) / 5) + 1
  local year = cycle * 400 + yearOfCycle + (month >= 10 and 1 or 0)
  return year, month < 10 and month + 3 or month - 9, dayOfMonth
end

-- Adds units, which may be negative, to a sum of the history, and returns how many: at most as many as the sum has are
-- subtracted. A sum of 0 is removed. An error, such as that of a key of another type, must not keep the quota from working.
local function addTo(name, field, units, expiryDay)
  local sum = tryCall('HINCRBY', name, field, units)
  if sum == units and units > 0 then
    tryCall('PEXPIREAT', name, string.format('%.0f', expiryDay * DAY_MS))
  elseif type(sum) == 'number' and sum <= 0 then
    tryCall('HDEL', name, field)
    return units - sum
  end
  return units
end

-- Names of the hour of the last call. The gateway's clock is usually right, so they need not be computed.
local namedHour, dayName, hourField, yearName, dayField = tonumber(ARGV[6]), ARGV[7], ARGV[8], ARGV[9], ARGV[10]

-- Adds units to the customer's usage history. `hour`: the number of hours since 1970.
local function addToHistory(window, hour, units)
  if hourRetentionDays == 0 or units == 0 then
    return
  end
  local day = math.floor(hour / 24)
  if hour ~= namedHour then
    local year, month, dayOfMonth = dateOf(day)
    dayName, hourField = string.format(':%04d%02d%02d', year, month, dayOfMonth), string.format('%02d', hour - 24 * day)
    yearName, dayField = string.format(':%04d', year), string.format('%02d%02d', month, dayOfMonth)
    namedHour = hour
  end
  if prefixEnd then
    local customer = string.sub(window, prefixEnd + 8)
    units = addTo(usagePrefix .. customer .. dayName, hourField, units, day + 1 + hourRetentionDays)
    if units ~= 0 then
      addTo(usageDaysPrefix .. customer .. yearName, dayField, units, day + 366 + dayRetentionDays)
    end
  end
end

-- Called when the oldest bucket is unknown, after a pause of more than MAX_STEPS buckets, or when the clock went back.
local function recount(window, epoch, holdEnd)
  local used, oldest, newest, folded = 0, 0, 0, 0
  local fields = call('HGETALL', window)
  for i = 1, #fields, 2 do
    local bucket, units = tonumber(fields[i]), tonumber(fields[i + 1])
    if bucket and bucket <= expired then
      call('HDEL', window, bucket)
    elseif bucket and bucket > farthest then
      call('HDEL', window, bucket)
      folded = folded + units
    elseif bucket then
      used, newest = used + units, math.max(newest, bucket)
      oldest = oldest == 0 and bucket or math.min(oldest, bucket)
    end
  end
  if folded > 0 then
    call('HINCRBY', window, latest, folded)
    used, newest = used + folded, math.max(newest, latest)
    oldest = oldest == 0 and latest or math.min(oldest, latest)
    local lineage, number = string.match(epoch, '^([^:]+):?(%d*)$')
    epoch = string.format('%s:%d', lineage, (tonumber(number) or 0) + 1)
    holdEnd = math.min(holdEnd, now + MAX_HOLD_MS)
  end
  return epoch, used, oldest, newest, holdEnd
end

-- Applies the refunds in ARGV from `first` to `last` (of each: epoch, bucket, units, hour), and drops expired buckets.
-- `hasHistory`: the usage history counts the units of this window.
-- Returns the fields of the head, whether they have changed, and the number of refunded units.
local function open(window, hasHistory, first, last)
  local epoch, used, oldest, newest, holdEnd = freshEpoch, 0, 0, 0, 0
  local head = call('HGET', window, 'head')
  if head then
    epoch, used, oldest, newest, holdEnd = string.match(head, HEAD_PATTERN)
    if not epoch then
      error(NO_HEAD)
    end
    used, oldest, newest, holdEnd = tonumber(used), tonumber(oldest), tonumber(newest), tonumber(holdEnd)
  end
  local changed, refunded = false, 0
  for i = first, last, 4 do
    local bucket, units, hour = ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
    local isCurrent = ARGV[i] == epoch
    -- The history has what any epoch of this lineage granted. A deletion and a loss of data begin another lineage. An hour
    -- that is closed changes no more.
    if hasHistory and (isCurrent or string.match(ARGV[i], LINEAGE) == string.match(epoch, LINEAGE)) then
      addToHistory(window, now < (hour + 1) * HOUR_MS + HOUR_CLOSES_MS and hour or thisHour, -units)
    end
    local counted = isCurrent and units > 0 and tonumber(call('HGET', window, bucket))
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
      used, refunded, changed = used - units, refunded + units, true
    end
  end

  if newest > farthest then
    epoch, used, oldest, newest, holdEnd = recount(window, epoch, holdEnd)
    changed = true
  end
  if used > 0 and oldest <= expired then
    changed = true
    local steps = 0
    while oldest > 0 and used > 0 and steps < MAX_STEPS do
      local units = call('HGET', window, oldest)
      if units then
        if oldest > expired then
          break
        end
        call('HDEL', window, oldest)
        used = used - units
      end
      oldest, steps = oldest + 1, steps + 1
    end
    if used > 0 and (oldest == 0 or steps >= MAX_STEPS) then
      epoch, used, oldest, newest, holdEnd = recount(window, epoch, holdEnd)
    end
  end
  if used <= 0 then
    used, oldest = 0, 0
  end
  return epoch, used, oldest, newest, holdEnd, changed, refunded
end

-- Redis deletes the whole key once its last bucket has certainly expired.
local function expireAfter(window, newest)
  call('PEXPIREAT', window, string.format('%.0f', (math.max(newest, latest) + 2) * bucketMs + windowMs))
end
