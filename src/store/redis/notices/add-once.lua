-- Stores a notice of a customer, unless its mark counts.
--
-- KEYS[1]  the customer's notices: see claim-level.lua
-- ARGV     id and content of the notice, mark, store time until which the mark counts
-- Returns  1 if the notice was stored, else 0
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now < tonumber(call('HGET', KEYS[1], 'mark:' .. ARGV[3]) or 0) then
  return 0
end
local fields = call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  if string.find(fields[i], 'mark:', 1, true) == 1 and now >= (tonumber(fields[i + 1]) or 0) then
    call('HDEL', KEYS[1], fields[i])
  end
end
call('HSET', KEYS[1], 'mark:' .. ARGV[3], ARGV[4], 'notice:' .. ARGV[1], ARGV[2])
return 1
