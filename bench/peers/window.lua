-- KEYS[1] the key's record. ARGV[1] units. Returns {1 allowed | 0 over quota | -1 unknown key, units left, bucket seconds}.
local record = redis.call('HMGET', KEYS[1], 'cust', 'limit')
if not record[1] then return {-1, 0, 0} end
local limit = tonumber(record[2])
local now = tonumber(redis.call('TIME')[1])
local width = 10
local buckets = 360
local current = math.floor(now / width)
local window = 'w:' .. record[1]
local state = redis.call('HMGET', window, 't', 'o')
local total = tonumber(state[1]) or 0
local oldest = tonumber(state[2]) or current
local first = current - buckets
if oldest < first then
  if first - oldest > buckets then
    redis.call('DEL', window)
    total = 0
  else
    local gone = {}
    for i = oldest, first - 1 do gone[#gone + 1] = i end
    local counts = redis.call('HMGET', window, unpack(gone))
    for i = 1, #counts do
      if counts[i] then total = total - tonumber(counts[i]) end
    end
    redis.call('HDEL', window, unpack(gone))
  end
  oldest = first
end
local units = tonumber(ARGV[1])
if total + units > limit then return {0, limit - total, width} end
redis.call('HINCRBY', window, current, units)
redis.call('HSET', window, 't', total + units, 'o', oldest)
redis.call('PEXPIRE', window, 3700000)
return {1, limit - total - units, width}
