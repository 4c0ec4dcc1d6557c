-- Replaces a notice, if it is still the one that was read.
--
-- KEYS[1]  the customer's notices: see add-once.lua
-- ARGV     field, content as it was read, new content (empty: delete)
-- Returns  1, or 0 if the content is another one
if call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return 0
end
if ARGV[3] == '' then
  call('HDEL', KEYS[1], ARGV[1])
else
  call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return 1
