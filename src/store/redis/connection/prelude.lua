-- The beginning of every script. No functions: see window.lua.
local call = redis.call
local time = call('TIME')
-- The store's time in ms since 1970.
local now = time[1] * 1000 + math.floor(time[2] / 1000)
