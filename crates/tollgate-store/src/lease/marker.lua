-- Reads the marker of a primary, and writes it if it is missing or of another run. KEYS[1] is the
-- marker: the run id of the server that wrote it, and when. ARGV[5] is its TTL.
--
-- A server that hides its run id can still be told from one whose keys are gone.

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
local marker = redis.call('GET', KEYS[1])
local written_by, since = string.match(marker or '', '^(%w*):(%d+)$')
if written_by ~= run then
  since = string.format('%.0f', now)
  marker = run .. ':' .. since
end
redis.call('SET', KEYS[1], marker, 'PX', ARGV[5])
return { marker, string.format('%.0f', math.max(0, now - tonumber(since))) }
