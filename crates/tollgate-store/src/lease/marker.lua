-- Reads the marker of a primary: the run id of the server that wrote it, the id of its replication
-- history, and when. Writes it anew if it is missing. KEYS[1] is the marker, ARGV[5] its TTL.
--
-- The marker of another server is returned with what this one says of itself, and stays. A process
-- that knows more then claims it: ARGV[5] also has the marker, the run and the history that the
-- process saw, and the age that the marker gets.
--
-- A server that hides its run id can still be told from one whose keys are gone.

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local function info(section)
  local text = redis.pcall('INFO', section)
  return type(text) == 'string' and text or ''
end
local run = string.match(info('server'), 'run_id:(%w+)') or ''
local replication = info('replication')
local history = string.match(replication, 'master_replid:(%w+)') or ''
local previous = string.match(replication, 'master_replid2:(%w+)') or ''
local ttl, claimed, by_run, by_history, age =
  string.match(ARGV[5], '^(%d+) (%S+) (%w*) (%w*) (%d+)$')

local marker = redis.call('GET', KEYS[1])
local owner, written, since = string.match(marker or '', '^(%w*):(%w*):(%d+)$')
local same = written == history or written == previous or string.match(previous, '^0*$')
if not since then
  since = string.format('%.0f', now)
elseif owner ~= run or not same then
  if claimed ~= marker or by_run ~= run or by_history ~= history then
    local ended = string.match(replication, 'second_repl_offset:(%-?%d+)') or ''
    return { marker, run, history, previous, ended }
  end
  since = string.format('%.0f', math.max(0, now - tonumber(age)))
end
marker = run .. ':' .. history .. ':' .. since
redis.call('SET', KEYS[1], marker, 'PX', ttl or ARGV[5])
return { marker, string.format('%.0f', math.max(0, now - tonumber(since))) }
