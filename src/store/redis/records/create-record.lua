-- Writes a record unless one exists. KEYS[1] the hash; ARGV field, value, field, value, …
-- Returns 1 if it was written, 0 if a record exists.
if call('HLEN', KEYS[1]) > 0 then
  return 0
end
call('HSET', KEYS[1], unpack(ARGV))
return 1
