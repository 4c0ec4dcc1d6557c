-- Hourly windows of customers: the common beginning of reserve.lua and charge.lua, sent with each, and with period.lua,
-- as one script.
-- For the algorithm and its proof see ../../window-arithmetic.ts and ../../grants.ts, which must give the same results.
--
-- KEYS     windows, named `<prefix>:window:{<customer>}`, and those of its keys, whose names go on with `:<root>`: each a
--          hash with one field per bucket (index -> units) and the field `head`
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
local NONE = {}

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
local prefix = string.sub(KEYS[1], 1, prefixEnd)
local usagePrefix, usageDaysPrefix = prefix .. 'usage:', prefix .. 'usage-days:'
local grantsPrefix, periodPrefix = prefix .. 'grants:', prefix .. 'period:'

-- Of each customer a hash `<prefix>:grants:{<customer>}`: the id of a grant -> `<granted> <returned> <hour> <bucket> <epochs
-- of its windows>`, and ` <anchor of its period>` if it has one. A void one has granted 0 units. The field `kept` keeps the
-- hash, and with it its expiry, while it has no grant. The expiry is put off once an hour, so each grant is kept for at
-- least one.
local GRANT_FORMAT, GRANT_PATTERN, VOID, KEPT = '%d 0 %d %d %s', '^(%d+) (%d+) (%d+) (-?%d+) (.+)$', '-', 'kept'
local GRANTS_EXPIRE_MS = 2 * HOUR_MS
-- The customer whose windows are open, with its braces, and the name of its grants.
local customer, grants

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

-- Adds units to the customer's usage history, and returns how many, as addTo does. `hour`: the number of hours since 1970.
local function addToHistory(hour, units)
  if hourRetentionDays == 0 or units == 0 then
    return units
  end
  local day = math.floor(hour / 24)
  if hour ~= namedHour then
    local year, month, dayOfMonth = dateOf(day)
    dayName, hourField = string.format(':%04d%02d%02d', year, month, dayOfMonth), string.format('%02d', hour - 24 * day)
    yearName, dayField = string.format(':%04d', year), string.format('%02d%02d', month, dayOfMonth)
    namedHour = hour
  end
  units = addTo(usagePrefix .. customer .. dayName, hourField, units, day + 1 + hourRetentionDays)
  if units ~= 0 then
    addTo(usageDaysPrefix .. customer .. yearName, dayField, units, day + 366 + dayRetentionDays)
  end
  return units
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

-- Of the reservation that is served: what its refunds give back (of each: units, hour, bucket, epochs), and the ids to delete
-- at its end. A script whose first write is a deletion is not refused by a Redis that is full.
local returned, settled

-- Notes the refunds in ARGV from `first` to `last` (of each: id, units in total, 1 if it is the last one).
local function noteRefunds(first, last)
  returned, settled = NONE, NONE
  for i = first, last, 3 do
    local id, total = ARGV[i], tonumber(ARGV[i + 1])
    local note, isSettled = total > 0 and call('HGET', grants, id), ARGV[i + 2] == '1'
    if total > 0 and not note then
      isSettled = false
      call('HSET', grants, id, string.format(GRANT_FORMAT, 0, thisHour, 0, VOID), KEPT, 1)
      call('PEXPIRE', grants, GRANTS_EXPIRE_MS)
    elseif note then
      local granted, before, hour, bucket, epochs = string.match(note, GRANT_PATTERN)
      granted = tonumber(granted) or 0
      local units = granted > 0 and math.min(total, granted) - before or 0
      if units > 0 then
        call('HSET', grants, id, string.format('%d %d %s %s %s', granted, before + units, hour, bucket, epochs))
        returned = returned == NONE and {} or returned
        returned[#returned + 1] = { units, tonumber(hour), bucket, epochs }
      end
      isSettled = isSettled and granted > 0
    end
    if isSettled then
      settled = settled == NONE and {} or settled
      settled[#settled + 1] = id
    end
  end
end

-- See period.lua.
local definePeriods, refundPeriod

-- Drops expired buckets and applies refunds: the first window of a reservation notes those in ARGV from `first` to `last`.
-- `position`: among the windows of the reservation. The usage history counts the units of the first one.
-- Returns the fields of the head, whether they have changed, and the number of refunded units.
local function open(window, position, first, last)
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
  if position == 1 then
    noteRefunds(first, last)
  end
  for _, grant in ipairs(returned) do
    local units, hour, bucket, epochs = unpack(grant)
    local grantEpoch = ''
    for _ = 1, position do
      grantEpoch, epochs = string.match(epochs, '^(%S*) ?(.*)$')
    end
    local isCurrent = grantEpoch == epoch
    -- The history has what any epoch of this lineage granted. A deletion and a loss of data begin another lineage. An hour
    -- that is closed changes no more.
    if position == 1 and (isCurrent or string.match(grantEpoch, LINEAGE) == string.match(epoch, LINEAGE)) then
      local openHour = now < (hour + 1) * HOUR_MS + HOUR_CLOSES_MS and hour or thisHour
      local fromHistory, anchor = -addToHistory(openHour, -units), string.match(epochs, '%l+/%d+/%d+$')
      if anchor and fromHistory > 0 then
        definePeriods()
        refundPeriod(anchor, openHour, fromHistory)
      end
    end
    local counted = isCurrent and tonumber(call('HGET', window, bucket))
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
