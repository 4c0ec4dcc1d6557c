
-- Resets the period of the present: what it has counted may be used again.
--
-- KEYS     the customer's window, and its record
-- ARGV     window.lua's, then the anchor, the time, and field names
-- Returns  the resulting values of those fields of the record. Does not create a missing record.
--
-- A count that another program damaged is removed: the period begins with 0 again.
customer, anchor = string.sub(KEYS[1], prefixEnd + 8), ARGV[11]
definePeriods()
local isReadable = pcall(readPeriod)
-- Written first, as in reset-usage.lua.
if call('HGET', KEYS[2], 'plan') then
  call('HSET', KEYS[2], 'period_reset_at', ARGV[12])
end
if not isReadable then
  if type(tryCall('HDEL', periodPrefix .. customer, counter, counter .. ':forgiven')) ~= 'number' then
    call('DEL', periodPrefix .. customer)
  end
elseif unitsInPeriod > 0 then
  call('HSET', periodPrefix .. customer, counter .. ':forgiven', unitsInPeriod)
end
return call('HMGET', KEYS[2], unpack(ARGV, 13))
