-- Stores a notice of a customer and sets its marks, unless the first one counts.
--
-- KEYS[1]  the customer's notices: a hash with the fields `notice:<id>` (its content) and `mark:<mark>` (store time in ms
--          until which the mark counts)
-- ARGV     id and content of the notice, store time until which the marks count, marks
-- Returns  1 if the notice was stored, else 0
if now < (tonumber(call('HGET', KEYS[1], 'mark:' .. ARGV[4]) or 0) or 0) then
  return 0
end
local fields = call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  if string.find(fields[i], 'mark:', 1, true) == 1 and now >= (tonumber(fields[i + 1]) or 0) then
    call('HDEL', KEYS[1], fields[i])
  end
end
for i = 4, #ARGV do
  call('HSET', KEYS[1], 'mark:' .. ARGV[i], ARGV[3])
end
call('HSET', KEYS[1], 'notice:' .. ARGV[1], ARGV[2])
return 1
