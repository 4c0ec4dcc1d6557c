-- Names the commands that the user of this connection may not run. Redis checks permissions before it refuses writes of a
-- read-only script, so the answer is the same there. KEYS[1] or ARGV[1]: a key that is not there, before and after.
-- Redis checks permissions before anything else, so what else is wrong with a command does not matter.
local key = KEYS[1] or ARGV[1]
local refused = {}

local function isPermitted(name, ...)
  local reply = redis.pcall(name, ...)
  local message = type(reply) == 'table' and reply.err or ''
  -- The errors of Redis from 7.2 on, of Redis before that, and of a renamed command.
  if string.find(message, 'NOPERM') or string.find(message, "can't") or string.find(message, 'Unknown Redis command') then
    refused[#refused + 1] = name
    return false
  end
  return true
end

for _, command in ipairs({
  { 'GET', key }, { 'EXISTS', key }, { 'SET', key, 1, 'XX' },
  { 'HGET', key, 'f' }, { 'HDEL', key, 'f' }, { 'HGETALL', key }, { 'HLEN', key }, { 'HMGET', key, 'f' },
  { 'SREM', key, 'm' }, { 'SCARD', key }, { 'SSCAN', key, 0 },
  { 'ZCARD', key }, { 'ZREM', key, 'm' }, { 'ZREMRANGEBYSCORE', key, 0, 0 },
  { 'ZREMRANGEBYRANK', key, 0, 0 }, { 'ZRANGEBYSCORE', key, 0, 0 }, { 'ZREVRANGE', key, 0, 0 },
  { 'ZREVRANGEBYSCORE', key, 0, 0 },
  { 'ZMSCORE', key, 'm' }, { 'ZSCAN', key, 0 },
  { 'ZADD', key, 'XX', 0, 'm' }, { 'XADD', key, 'NOMKSTREAM', '*', 'f', 'v' }, { 'XREVRANGE', key, '+', '-' },
  { 'PEXPIRE', key, 1 }, { 'PEXPIREAT', key, 1 }, { 'TIME' }, { 'SCAN', 0 },
}) do
  isPermitted(unpack(command))
end

-- These create the key, so they run only if it can be deleted again.
if isPermitted('DEL', key) then
  for _, command in ipairs({ { 'SETNX', key, 1 }, { 'HSET', key, 'f', 1 }, { 'HINCRBY', key, 'f', 1 }, { 'SADD', key, 'm' } }) do
    isPermitted(unpack(command))
    redis.pcall('DEL', key)
  end
end
return refused
