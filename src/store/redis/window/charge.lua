-- Charge: counts units admitted without a reservation, regardless of the limit, each in the bucket of its own time. Units of
-- an id that is known are not counted again.
--
-- KEYS     the window of the customer, then those of keys
-- ARGV     window.lua's, then the anchor of the period or '', its terms without the end, and for each entry: its id, age
--          ms, units, and the position of the window of its key in KEYS; 1: none
-- Returns  the store time in ms, and the units counted afterwards in each window (-1: it is damaged, and counts nothing);
--          with a period its units, those forgiven, its first hour and its end hour, too
customer = string.sub(KEYS[1], prefixEnd + 8)
grants = grantsPrefix .. customer
anchor, included = ARGV[11], ARGV[12]
local hasPeriod = anchor ~= ''
if hasPeriod then
  definePeriods()
  readPeriod()
end
-- Of each window the fields of its head, and whether they have changed.
local windows = {}
for position, window in ipairs(KEYS) do
  -- Another program may have damaged that of a key, which must not keep the customer's units from being counted.
  local head = position > 1 and tryCall('HGET', window, 'head')
  if not head or type(head) == 'string' and string.match(head, HEAD_PATTERN) then
    local epoch, used, oldest, newest, holdEnd, changed = open(window, position, 11, 10)
    windows[position] = { epoch, used, oldest, newest, holdEnd, changed }
  end
end
for i = 13, #ARGV, 4 do
  local id, bucket, units = ARGV[i], math.min(math.floor((now - ARGV[i + 1]) / bucketMs), latest), tonumber(ARGV[i + 2])
  if not call('HGET', grants, id) then
    local position, counters = tonumber(ARGV[i + 3]), windows[1][1]
    if position > 1 then
      counters = counters .. ' ' .. (windows[position] and windows[position][1] or VOID)
    end
    for _, at in ipairs(position > 1 and { 1, position } or { 1 }) do
      local window = windows[at]
      if window and units > 0 and bucket > expired then
        local isNew = call('HINCRBY', KEYS[at], bucket, units) == units
        window[2], window[4] = window[2] + units, math.max(window[4], bucket)
        window[3] = window[3] == 0 and bucket or math.min(window[3], bucket)
        window[6] = true
        if isNew then
          expireAfter(KEYS[at], window[4])
        end
      end
    end
    counters = hasPeriod and counters .. ' ' .. anchor or counters
    call('HSET', grants, id, string.format(GRANT_FORMAT, units, thisHour, bucket, counters), KEPT, 1)
    call('PEXPIRE', grants, GRANTS_EXPIRE_MS)
    -- Not in the hour and the period in which they were admitted: they may be closed.
    addToHistory(thisHour, units)
    if hasPeriod and units > 0 then
      countInPeriod(units)
    end
  end
end
local reply = { now }
for position, name in ipairs(KEYS) do
  local window = windows[position]
  if window and window[6] then
    call('HSET', name, 'head', string.format(HEAD_FORMAT, unpack(window, 1, 5)))
  end
  reply[position + 1] = window and window[2] or -1
end
if hasPeriod then
  for _, number in ipairs({ unitsInPeriod, forgiven, starts, ends }) do
    reply[#reply + 1] = number
  end
end
return reply
