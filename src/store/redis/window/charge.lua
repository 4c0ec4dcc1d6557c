
-- Charge: counts units admitted without a reservation, regardless of the limit, each in the bucket of its own time.
--
-- ARGV     window.lua's, then for each entry: age ms, units
-- Returns  the units counted afterwards
dropExpired()
for i = 4, #ARGV, 2 do
  local bucket = math.min(math.floor((now - ARGV[i]) / bucketMs), latest)
  local units = tonumber(ARGV[i + 1])
  if units > 0 and dropTime(bucket) > now then
    add(bucket, units)
  end
end
save()
return used
