-- Counts a write of a customer. KEYS[1] its writes; ARGV[1] a unique id, ARGV[2] the limit, ARGV[3] for how long, in ms.
-- Returns 0, or how long to wait in ms if there were as many within that time.
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[3])
if call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  local oldest = call('ZRANGEBYSCORE', KEYS[1], 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  -- Another program may have written any score.
  return math.min(tonumber(ARGV[3]), math.max(1, oldest[2] + ARGV[3] - now))
end
call('ZADD', KEYS[1], now, ARGV[1])
call('PEXPIRE', KEYS[1], ARGV[3])
return 0
