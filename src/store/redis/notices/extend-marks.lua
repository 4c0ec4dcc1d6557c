-- Extends those marks of a customer that count.
--
-- KEYS[1]  the customer's notices: see add-once.lua
-- ARGV     store time in ms until which they count, marks
-- Returns  1 if the first mark counts, else 0
local firstCounts = 0
for i = 2, #ARGV do
  local field = 'mark:' .. ARGV[i]
  if now < (tonumber(call('HGET', KEYS[1], field) or 0) or 0) then
    call('HSET', KEYS[1], field, ARGV[1])
    firstCounts = i == 2 and 1 or firstCounts
  end
end
return firstCounts
