-- What the benchmark tells wrk. Arguments, one of:
--   (none)          all requests are the same
--   keys FILE SEED DELAY  every request carries an API key at random, of a file with one a line. Before each, its
--                   connection waits for DELAY milliseconds on average
--   post BYTES      all requests are the same POST with a body of so many bytes
--   each            every request is timed here, for one connection. wrk's own percentiles are corrected for coordinated
--                   omission: after a pause they also count the requests that a caller who does not wait would have sent
-- At the end one line of JSON says exactly what wrk prints rounded; times are microseconds.

local worker

function setup(thread)
  worker = thread
end

function init(args)
  if args[1] == 'keys' then takeKeys(args[2], tonumber(args[3]), tonumber(args[4])) end
  if args[1] == 'each' then timeEach() end
  if args[1] == 'post' then post(tonumber(args[2])) end
end

function post(bytes)
  wrk.method = 'POST'
  wrk.body = string.rep('x', bytes)
  wrk.headers['Content-Type'] = 'application/octet-stream'
end

function takeKeys(file, seed, delayMs)
  local requests = {}
  for key in io.lines(file) do
    requests[#requests + 1] = wrk.format('GET', nil, { Host = wrk.headers.Host, Authorization = 'Bearer ' .. key })
  end
  math.randomseed(seed)
  request = function() return requests[math.random(#requests)] end
  if delayMs > 0 then
    delay = function() return math.random(0, 2 * delayMs) end
  end
end

function timeEach()
  local ffi = require('ffi')
  ffi.cdef('typedef struct { long seconds; long nanos; } timespec; int clock_gettime(int, timespec *);')
  local CLOCK_MONOTONIC = 1
  local time = ffi.new('timespec')
  local function now()
    ffi.C.clock_gettime(CLOCK_MONOTONIC, time)
    return tonumber(time.seconds) * 1e6 + tonumber(time.nanos) / 1e3
  end
  local same = wrk.format()
  local start
  counts = {} -- of requests, by whole microseconds
  request = function()
    start = now()
    return same
  end
  response = function()
    local micros = math.floor(now() - start)
    counts[micros] = (counts[micros] or 0) + 1
  end
end

local function percentileOf(counts, percent)
  local times, total = {}, 0
  for micros, count in pairs(counts) do
    times[#times + 1] = micros
    total = total + count
  end
  table.sort(times)
  local seen = 0
  for _, micros in ipairs(times) do
    seen = seen + counts[micros]
    if seen >= total * percent / 100 then return micros end
  end
  return 0
end

function done(summary, latency)
  local timed = worker:get('counts')
  local function percentile(percent)
    return timed and percentileOf(timed, percent) or latency:percentile(percent)
  end
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"bytes":%d,"micros":%d,"refused":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d,"p50":%d,"p99":%d,"p999":%d}\n',
    summary.requests, summary.bytes, summary.duration,
    errors.status, errors.connect, errors.read, errors.write, errors.timeout,
    percentile(50), percentile(99), percentile(99.9)))
end
