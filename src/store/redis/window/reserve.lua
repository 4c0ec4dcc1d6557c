
-- Reserve: counts units in all windows of a reservation or in none of them, one reservation after the other.
--
-- KEYS     the windows of the first reservation, in the order of its limits, then those of the next one, …
-- ARGV     window.lua's, then for each reservation: its id, need, units of the heaviest request, ahead, hold ms, number of
--          windows, the units that each of these allows, the anchor of its period or '', and if it has one: the units that
--          it allows, and its terms without the end; number of refunds, and for each refund: id of the grant, units in
--          total, 1 if it is the last one
-- Returns  the store time in ms, then for each reservation an error, or `<granted> <units refunded to the first window>`
--          and for each window ` <wait ms, -1: never> <head>`, and for a period ` <units> <forgiven> <first hour> <end hour>`
local AHEAD_DIVISOR, LONG_AHEAD_DIVISOR, LONG_HOLD_MS = 8, 64, 5000
-- In a small hash, Redis finds the first fields quickly and later ones ever more slowly. The oldest buckets come first.
-- So a few buckets are read by name; for more, reading the whole hash costs less.
local NEAR_CHUNK, NEAR_CHUNKS = 32, 2
-- Ids that nobody settles are dropped once an hour while there are as many: the hash lives on while its customer is busy.
local GRANTS_TO_SWEEP = 64

-- Returns the bucket with which `toDrop` units will have expired; nil if there are not as many.
local function bucketThatFrees(window, toDrop, oldest, newest)
  local far = oldest + NEAR_CHUNKS * NEAR_CHUNK
  for first = oldest, far - 1, NEAR_CHUNK do
    local indices = {}
    for i = 1, NEAR_CHUNK do
      indices[i] = first + i - 1
    end
    for i, units in ipairs(call('HMGET', window, unpack(indices))) do
      toDrop = toDrop - (tonumber(units) or 0)
      if toDrop <= 0 then
        return first + i - 1
      end
    end
  end
  local fields, units = call('HGETALL', window), {}
  for i = 1, #fields, 2 do
    units[tonumber(fields[i]) or 0] = tonumber(fields[i + 1])
  end
  for bucket = far, newest do
    toDrop = toDrop - (units[bucket] or 0)
    if toDrop <= 0 then
      return bucket
    end
  end
end

-- Of the reservation that is served. `limitsAt`: of its first limit in ARGV; `firstKey`: of its first window.
local id, need, heaviest, ahead, holdMs, count, limitsAt, periodLimit, refundsAt, refundsEnd, firstKey

-- Opens the windows from that at `position` on, and counts what all of them leave, at most `available`. `epochs`: of those
-- before. A call of its own for each window: its state stays in local variables, which cost less than a table.
-- Returns the granted units, for each limit `<wait> <head>`, and the units refunded to the first window.
local function reserve(position, available, epochs)
  local window, limit = KEYS[firstKey + position - 1], tonumber(ARGV[limitsAt + position - 1])
  -- Before the first write: a damaged window must not leave another one half changed.
  for i = firstKey + position, firstKey + count - 1 do
    local head = call('HGET', KEYS[i], 'head')
    if head and not string.match(head, HEAD_PATTERN) then
      error(NO_HEAD)
    end
  end
  if position == 1 and periodLimit then
    readPeriod()
  end
  local epoch, used, oldest, newest, holdEnd, changed, refunded = open(window, position, refundsAt, refundsEnd)
  available = math.min(available, math.max(0, limit - used))
  epochs = epochs and epochs .. ' ' .. epoch or epoch
  local bucket = math.floor((now + holdMs) / bucketMs)
  local granted, others
  if position < count then
    granted, others = reserve(position + 1, available, epochs)
  else
    if periodLimit then
      if returned ~= NONE then
        readPeriod()
      end
      available = math.min(available, math.max(0, periodLimit - math.max(0, unitsInPeriod - forgiven)))
      epochs = epochs .. ' ' .. anchor
    end
    local divisor = holdMs >= LONG_HOLD_MS and LONG_AHEAD_DIVISOR or AHEAD_DIVISOR
    granted = available - available % heaviest
    if available >= need then
      granted = need + math.min(ahead, math.floor((available - need) / divisor))
    end
    if granted > 0 then
      local added = call('HSET', grants, id, string.format(GRANT_FORMAT, granted, thisHour, bucket, epochs), KEPT, 1)
      if added == 0 then
        -- Its refund has come before it.
        call('HSET', grants, id, string.format(GRANT_FORMAT, 0, thisHour, 0, VOID))
        granted = 0
      elseif added == 2 or math.floor(newest * bucketMs / HOUR_MS) < math.floor(bucket * bucketMs / HOUR_MS) then
        call('PEXPIRE', grants, GRANTS_EXPIRE_MS)
        local fields = call('HLEN', grants) > GRANTS_TO_SWEEP and call('HGETALL', grants) or {}
        for i = 1, #fields, 2 do
          local hour = tonumber(string.match(fields[i + 1], '^%d+ %d+ (%d+) ') or thisHour)
          if hour < thisHour - 1 then
            call('HDEL', grants, fields[i])
          end
        end
      end
    end
    if granted > 0 and periodLimit then
      countInPeriod(granted)
    end
  end
  if granted > 0 then
    local isNew = call('HINCRBY', window, bucket, granted) == granted
    used, newest, holdEnd = used + granted, math.max(newest, bucket), math.max(holdEnd, now + holdMs)
    oldest = oldest == 0 and bucket or math.min(oldest, bucket)
    changed = true
    if isNew then
      expireAfter(window, newest)
    end
    if position == 1 then
      addToHistory(thisHour, granted)
    end
  end
  local head = string.format(HEAD_FORMAT, epoch, used, oldest, newest, holdEnd)
  if changed then
    call('HSET', window, 'head', head)
  end
  local wait = -1
  if used > 0 and limit > 0 then
    local wanted = need > 0 and granted >= need and 1 or heaviest
    local toDrop, bucket = used - limit + wanted, oldest
    if toDrop > 1 and toDrop > tonumber(call('HGET', window, oldest) or 0) then
      bucket = bucketThatFrees(window, toDrop, oldest, newest)
    end
    if bucket then
      wait = (bucket + 1) * bucketMs + windowMs - now
    end
  end
  local counted = string.format('%d ', wait) .. head
  return granted, others and counted .. ' ' .. others or counted, refunded
end

local replies, at = { now }, 11
firstKey = 1
while ARGV[at] do
  id, need, heaviest = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  ahead, holdMs, count = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  limitsAt = at + 6
  anchor, periodLimit, refundsAt = ARGV[limitsAt + count], nil, limitsAt + count + 2
  if anchor ~= '' then
    definePeriods()
    periodLimit, included, refundsAt = tonumber(ARGV[refundsAt - 1]), ARGV[refundsAt], refundsAt + 2
  end
  refundsEnd = refundsAt - 1 + 3 * ARGV[refundsAt - 1]
  customer = string.sub(KEYS[firstKey], prefixEnd + 8)
  grants = grantsPrefix .. customer
  local ok, granted, counts, refunded = pcall(reserve, 1, math.huge)
  if ok and settled[1] then
    call('HDEL', grants, unpack(settled))
  end
  if ok then
    local period = periodLimit and string.format(' %d %d %d %d', unitsInPeriod, forgiven, starts, ends) or ''
    replies[#replies + 1] = string.format('%d %d ', granted, refunded) .. counts .. period
  else
    -- The error of a command begins with its code, before Redis 7 after the line of the script; that of Lua with a line.
    local text = string.gsub(granted, '^@user_script: ?%d+: %-?', '')
    replies[#replies + 1] = { err = (string.find(text, '^%u+ ') and '' or 'ERR ') .. text .. ', on @user_script' }
  end
  at, firstKey = refundsEnd + 1, firstKey + count
end
return replies
