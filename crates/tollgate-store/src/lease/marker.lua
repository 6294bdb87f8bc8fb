-- Whether the store is the one it was. KEYS[1] is the mark: the run of the server that wrote it,
-- and when. ARGV[5] is for how long it is kept.
--
-- A server that does not say which run it is can still be told from one whose keys are gone.

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
local mark = redis.call('GET', KEYS[1])
local written_by, since = string.match(mark or '', '^(%w*):(%d+)$')
if written_by ~= run then
  since = string.format('%.0f', now)
  mark = run .. ':' .. since
end
redis.call('SET', KEYS[1], mark, 'PX', ARGV[5])
return { mark, string.format('%.0f', math.max(0, now - tonumber(since))) }
