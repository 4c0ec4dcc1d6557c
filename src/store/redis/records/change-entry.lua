-- Changes an index entry if it has the expected value. KEYS[1] the string; ARGV[1] the expected value, ARGV[2] the new
-- value (empty: delete the entry). Returns 1 if it was changed, else 0.
if call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
if ARGV[2] == '' then
  call('DEL', KEYS[1])
else
  call('SET', KEYS[1], ARGV[2])
end
return 1
