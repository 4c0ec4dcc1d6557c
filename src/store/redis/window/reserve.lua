
-- Reserve: counts units in all windows of a reservation or in none of them, one reservation after the other.
--
-- KEYS     the windows of the first reservation, in the order of its limits, then those of the next one, …
-- ARGV     window.lua's, then for each reservation: need, units of the heaviest request, ahead, hold ms, number of limits, and for each of these: units that
--          it allows, number of refunds, and for each refund: epoch, bucket, units, and the hour of the grant
-- Returns  the store time in ms, then for each reservation an error, or `<granted> <units refunded to the first window>`
--          and for each limit ` <wait ms, -1: never> <head>`
local AHEAD_DIVISOR, LONG_AHEAD_DIVISOR, LONG_HOLD_MS = 8, 64, 5000
-- In a small hash, Redis finds the first fields quickly and later ones ever more slowly. The oldest buckets come first.
-- So a few buckets are read by name; for more, reading the whole hash costs less.
local NEAR_CHUNK, NEAR_CHUNKS = 32, 2

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

-- Opens the windows of `count` limits, from those at KEYS[key] and ARGV[at] on, and counts what all of them leave, at most
-- `available`. `hasHistory`: as for open; the other windows have none. A call of its own for each window: its state stays in local variables, which cost less than a table.
-- Returns the granted units, for each limit `<wait> <head>`, and the units refunded to the first window.
local function reserve(key, at, count, available, need, heaviest, ahead, holdMs, hasHistory)
  local window, limit = KEYS[key], tonumber(ARGV[at])
  local last = at + 1 + 4 * ARGV[at + 1]
  -- Before the first write: a damaged window must not leave another one half changed.
  for i = key + 1, key + count - 1 do
    local head = call('HGET', KEYS[i], 'head')
    if head and not string.match(head, HEAD_PATTERN) then
      error(NO_HEAD)
    end
  end
  local epoch, used, oldest, newest, holdEnd, changed, refunded = open(window, hasHistory, at + 2, last)
  available = math.min(available, math.max(0, limit - used))
  local granted, others
  if count > 1 then
    granted, others = reserve(key + 1, last + 1, count - 1, available, need, heaviest, ahead, holdMs, false)
  elseif available < need then
    granted = available - available % heaviest
  else
    local divisor = holdMs >= LONG_HOLD_MS and LONG_AHEAD_DIVISOR or AHEAD_DIVISOR
    granted = need + math.min(ahead, math.floor((available - need) / divisor))
  end
  if granted > 0 then
    local bucket = math.floor((now + holdMs) / bucketMs)
    local isNew = call('HINCRBY', window, bucket, granted) == granted
    used, newest, holdEnd = used + granted, math.max(newest, bucket), math.max(holdEnd, now + holdMs)
    oldest = oldest == 0 and bucket or math.min(oldest, bucket)
    changed = true
    if isNew then
      expireAfter(window, newest)
    end
    if hasHistory then
      addToHistory(window, thisHour, granted)
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

local replies, at, key = { now }, 11, 1
while ARGV[at] do
  local count, nextAt = tonumber(ARGV[at + 4]), at + 5
  for _ = 1, count do
    nextAt = nextAt + 2 + 4 * ARGV[nextAt + 1]
  end
  local need, heaviest, ahead, holdMs = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local ok, granted, counts, refunded = pcall(reserve, key, at + 5, count, math.huge, need, heaviest, ahead, holdMs, true)
  if ok then
    replies[#replies + 1] = string.format('%d %d ', granted, refunded) .. counts
  else
    -- The error of a command begins with its code, before Redis 7 after the line of the script; that of Lua with a line.
    local text = string.gsub(granted, '^@user_script: ?%d+: %-?', '')
    replies[#replies + 1] = { err = (string.find(text, '^%u+ ') and '' or 'ERR ') .. text .. ', on @user_script' }
  end
  at, key = nextAt, key + count
end
return replies
