-- Announces an instance. KEYS[1] the sorted set of instances; ARGV[1] the instance, ARGV[2] how long an announcement
-- counts, in milliseconds. Returns the number of instances announced within that time, and the store's time.
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - ARGV[2]))
call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
call('PEXPIRE', KEYS[1], ARGV[2])
return { call('ZCARD', KEYS[1]), now }
