-- Resets usage. KEYS[1] the window of a customer, KEYS[2] its record, KEYS[3] its grants; ARGV[1] the time, then field names.
-- Returns the resulting values of those fields of the record. Does not create a missing record. Without ARGV, the window is
-- one of its keys, and the record stays as it is.
-- The record is written first: if it has a wrong type, the script fails before it changes the window.
local record
if ARGV[1] then
  if call('HGET', KEYS[2], 'plan') then
    call('HSET', KEYS[2], 'usage_reset_at', ARGV[1])
  end
  record = call('HMGET', KEYS[2], unpack(ARGV, 2))
end
-- As `reset` in ../../window-arithmetic.ts: the head stays, with the next epoch. A damaged window is deleted as a whole.
local head = redis.pcall('HGET', KEYS[1], 'head')
local form = '^([^%s:]+):?(%d*) %d+ %d+ (%d+) %d+$'
local lineage, number, newest = string.match(type(head) == 'string' and head or '', form)
call('DEL', KEYS[1])
-- The ids of grants stay, so that no refund runs twice, unless another program wrote this name.
if type(redis.pcall('HLEN', KEYS[3])) ~= 'number' then
  call('DEL', KEYS[3])
end
if lineage then
  local epoch = string.format('%s:%d', lineage, (tonumber(number) or 0) + 1)
  call('HSET', KEYS[1], 'head', string.format('%s 0 0 %s 0', epoch, newest))
  -- Every lease that is open now has ended by then.
  call('PEXPIRE', KEYS[1], 3600000)
end
return record
