-- Stores a node's report and lists the node, each until the lifetime of the report is over. KEYS[1]
-- is the list, KEYS[2] the report. ARGV[5] is the lifetime in milliseconds and the node's name, a
-- line feed, and the report.
--
-- A line of the list is the instant in milliseconds at which a report ends, and the name.

local MOST = 256
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lifetime, node, report = string.match(ARGV[5], '^(%d+) ([^\n]+)\n(.*)$')

local lines = { string.format('%.0f %s\n', now + lifetime, node) }
for ends, name in string.gmatch(redis.call('GET', KEYS[1]) or '', '(%d+) ([^\n]+)\n') do
  if name ~= node and tonumber(ends) > now and #lines < MOST then
    lines[#lines + 1] = ends .. ' ' .. name .. '\n'
  end
end
redis.call('SET', KEYS[1], table.concat(lines), 'PX', lifetime)
redis.call('SET', KEYS[2], report, 'PX', lifetime)
return #lines
