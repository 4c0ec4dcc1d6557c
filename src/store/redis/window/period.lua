
-- Periods: the same as in ../../periods.ts. After window.lua.

-- Returns the number of days of the month that begins on a day (since 1970). No month has more than 31, so the 32nd day
-- from its beginning is in the next one.
local function daysOfMonth(first)
  local _, _, dayOfNext = dateOf(first + 31)
  return 32 - dayOfNext
end

-- Returns the first hour (since 1970) of the period in which an hour is, and that of the next period.
local function periodAt(hour, per, anchorDay, anchorHour)
  if per == 'day' then
    local start = hour - (hour - anchorHour) % 24
    return start, start + 24
  end
  local day = math.floor(hour / 24)
  local _, _, dayOfMonth = dateOf(day)
  local first = day - dayOfMonth + 1
  local days = daysOfMonth(first)
  local start = (first + math.min(anchorDay, days) - 1) * 24 + anchorHour
  if hour < start then
    local _, _, daysBefore = dateOf(first - 1)
    return (first - daysBefore + math.min(anchorDay, daysBefore) - 1) * 24 + anchorHour, start
  end
  local nextFirst = first + days
  return start, (nextFirst + math.min(anchorDay, daysOfMonth(nextFirst)) - 1) * 24 + anchorHour
end
