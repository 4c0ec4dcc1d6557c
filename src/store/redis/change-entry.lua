-- Changes an index entry that is what it was when it was read. KEYS[1] the string; ARGV[1] what it was, ARGV[2] what it
-- is to be (empty: deleted). Returns 1 if it was changed, else 0.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2])
end
return 1
