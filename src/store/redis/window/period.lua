
-- Periods: the same as in ../../periods.ts. After window.lua.
--
-- Of each customer a hash `<prefix>:period:{<customer>}`: the first hour of a month, or `d` and that of a day -> units;
-- `<the same>:at` -> `<end hour> <included units> <refuse or allow> <plan>`, as of the last grant; `<the same>:forgiven` ->
-- units that a reset allows to be used again. An anchor is `<day or month>/<day of the month>/<hour>`.
local KEPT_HOURS = 40 * 24
local NO_PERIOD = 'the period of this customer is not one of Tollgate'

-- Of the reservation that is served: the anchor of its period, or '', and what its grants go by.
local anchor, included
local counter, starts, ends, unitsInPeriod, forgiven, terms

local periodAt, readPeriod, countInPeriod

-- Defines the functions for periods. Most scripts have no use for them, and to create them costs as much as a command.
function definePeriods()
  -- Returns the name of the period in which an hour is, its first hour and that of the next period.
  function periodAt(hour, anchor)
    local per, anchorDay, anchorHour = string.match(anchor, '^(%l+)/(%d+)/(%d+)$')
    if per == 'day' then
      local starts = hour - (hour - anchorHour) % 24
      return string.format('d%d', starts), starts, starts + 24
    end
    local day = math.floor(hour / 24)
    local _, _, dayOfMonth = dateOf(day)
    local first = day - dayOfMonth + 1
    -- No month has more than 31 days, so the 32nd day from its beginning is in the next one.
    local _, _, over = dateOf(first + 31)
    local days = 32 - over
    local starts = (first + math.min(anchorDay, days) - 1) * 24 + anchorHour
    local ends = starts
    if hour < starts then
      local _, _, daysBefore = dateOf(first - 1)
      starts = (first - daysBefore + math.min(anchorDay, daysBefore) - 1) * 24 + anchorHour
    else
      local _, _, overNext = dateOf(first + days + 31)
      ends = (first + days + math.min(anchorDay, 32 - overNext) - 1) * 24 + anchorHour
    end
    return string.format('%d', starts), starts, ends
  end

  -- Reads the period of the present.
  function readPeriod()
    counter, starts, ends = periodAt(thisHour, anchor)
    local found = call('HMGET', periodPrefix .. customer, counter, counter .. ':forgiven', counter .. ':at')
    unitsInPeriod, forgiven, terms = tonumber(found[1] or 0), tonumber(found[2] or 0), found[3]
    if not unitsInPeriod or not forgiven then
      error(NO_PERIOD)
    end
  end

  -- Counts units in the period that was read, and drops the periods that are no longer kept.
  function countInPeriod(units)
    local name, newTerms = periodPrefix .. customer, string.format('%d ', ends) .. included
    unitsInPeriod = call('HINCRBY', name, counter, units)
    if terms == newTerms then
      return
    end
    terms = newTerms
    call('HSET', name, counter .. ':at', terms)
    local fields, last = call('HGETALL', name), 0
    for i = 1, #fields, 2 do
      local other = string.match(fields[i], '^(d?%d+):at$')
      local otherEnds = other and tonumber(string.match(fields[i + 1], '^%d+'))
      if otherEnds and otherEnds + KEPT_HOURS <= thisHour then
        call('HDEL', name, other, fields[i], other .. ':forgiven')
      elseif otherEnds then
        last = math.max(last, otherEnds)
      end
    end
    call('PEXPIREAT', name, string.format('%.0f', (last + KEPT_HOURS) * HOUR_MS))
  end

  -- Gives units back to the period in which an hour is. Never fails: the refund is noted already.
  function refundPeriod(anchor, hour, units)
    local name, counter = periodPrefix .. customer, periodAt(hour, anchor)
    local found = tryCall('HMGET', name, counter, counter .. ':forgiven')
    local counted, forgiven = tonumber(found[1] or 0), tonumber(found[2] or 0)
    if not counted or counted == 0 or not forgiven then
      return
    end
    local left = math.max(0, counted - units)
    if left > 0 then
      call('HSET', name, counter, string.format('%d', left))
    else
      call('HDEL', name, counter)
    end
    if left < forgiven then
      call('HSET', name, counter .. ':forgiven', string.format('%d', left))
    end
  end
end
