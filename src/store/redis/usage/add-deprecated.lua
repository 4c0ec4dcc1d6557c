-- Adds calls of deprecated routes. KEYS[1] the hash of the day: `<customer> <route>` → `<count> <gone> <last in Unix ms>`;
-- ARGV[1] the most fields that it may have, ARGV[2] when it expires in Unix ms, then field, count, gone, last, …
local held = redis.pcall('HLEN', KEYS[1])
if type(held) ~= 'number' then
  return
end
for i = 3, #ARGV, 4 do
  local former = call('HGET', KEYS[1], ARGV[i])
  if former or held < tonumber(ARGV[1]) then
    held = held + (former and 0 or 1)
    local count, gone, last = string.match(former or '', '^(%d+) (%d+) (%d+)$')
    local sum = string.format(
      '%.0f %.0f %.0f',
      (tonumber(count) or 0) + ARGV[i + 1],
      (tonumber(gone) or 0) + ARGV[i + 2],
      math.max(tonumber(last) or 0, tonumber(ARGV[i + 3]))
    )
    call('HSET', KEYS[1], ARGV[i], sum)
  end
end
call('PEXPIREAT', KEYS[1], ARGV[2])
