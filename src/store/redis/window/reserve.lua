
-- Reserve: checks the limits of some windows and counts units, one window after the other.
--
-- ARGV     window.lua's, then for each window: need, ahead, limit, hold ms, number of refunds, and for each of these:
--          epoch, bucket, units, and the hour of the grant
-- Returns  the store time in ms, then for each window an error, or
--          `<granted> <wait ms, -1: never> <refunded> <head>`
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

local function reserve(window, at, last)
  local epoch, used, oldest, newest, holdEnd, changed, refunded = open(window, at + 5, last)
  local limit, holdMs = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local available = math.max(0, limit - used)
  local granted = math.min(tonumber(ARGV[at]), available)
  local divisor = holdMs >= LONG_HOLD_MS and LONG_AHEAD_DIVISOR or AHEAD_DIVISOR
  granted = granted + math.min(tonumber(ARGV[at + 1]), math.floor((available - granted) / divisor))
  if granted > 0 then
    local bucket = math.floor((now + holdMs) / bucketMs)
    local isNew = call('HINCRBY', window, bucket, granted) == granted
    used, newest, holdEnd = used + granted, math.max(newest, bucket), math.max(holdEnd, now + holdMs)
    oldest = oldest == 0 and bucket or math.min(oldest, bucket)
    changed = true
    if isNew then
      expireAfter(window, newest)
    end
    addToHistory(window, thisHour, granted)
  end
  local head = string.format(HEAD_FORMAT, epoch, used, oldest, newest, holdEnd)
  if changed then
    call('HSET', window, 'head', head)
  end
  local wait = -1
  if used > 0 and limit > 0 then
    local toDrop, bucket = used - limit + 1, oldest
    if toDrop > 1 and toDrop > tonumber(call('HGET', window, oldest) or 0) then
      bucket = bucketThatFrees(window, toDrop, oldest, newest)
    end
    if bucket then
      wait = (bucket + 1) * bucketMs + windowMs - now
    end
  end
  return string.format('%d %d %d ', granted, wait, refunded) .. head
end

local replies, at = { now }, 11
for i, window in ipairs(KEYS) do
  local last = at + 4 + 4 * ARGV[at + 4]
  local ok, reply = pcall(reserve, window, at, last)
  if not ok then
    -- The error of a command begins with its code, before Redis 7 after the line of the script; that of Lua with a line.
    local text = string.gsub(reply, '^@user_script: ?%d+: %-?', '')
    reply = { err = (string.find(text, '^%u+ ') and '' or 'ERR ') .. text .. ', on @user_script' }
  end
  replies[i + 1] = reply
  at = last + 1
end
return replies
