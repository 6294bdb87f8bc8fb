-- What an operator wants to know of a server, and which of the commands that the other scripts use it refuses. KEYS[1] is nobody's.
--
-- Answers with the server's time, what it says of itself and of its memory, and the names of the commands that it refuses.

local COMMANDS = {
  { 'GET', KEYS[1] },
  { 'MGET', KEYS[1] },
  { 'SET', KEYS[1], '1', 'PX', '1' },
  { 'INCRBY', KEYS[1], '1' },
  { 'UNLINK', KEYS[1] },
}

local function refused(reply)
  return type(reply) == 'table' and reply.err ~= nil
end

-- What is missing where a command was refused: its name, or KEYS for the right to use keys like these. Nothing where that is not a matter of
-- rights: then the server cannot decide at all, which is another answer.
local function lacks(name, err)
  if err:find('access') and err:find('key') then
    return 'KEYS'
  end
  if err:find('NOPERM') or err:find('user executing') or err:find('nknown') then
    return name
  end
end

local function section(name, missing)
  local text = redis.pcall('INFO', name)
  if refused(text) then
    missing['INFO'] = true
    return ''
  end
  return text
end

local names, missing = {}, {}
local time = redis.pcall('TIME')
if refused(time) then
  missing['TIME'] = true
  time = { '0', '0' }
end
for _, command in ipairs(COMMANDS) do
  local reply = redis.pcall(unpack(command))
  if refused(reply) then
    local name = lacks(command[1], reply.err)
    if not name then
      return reply
    end
    missing[name] = true
  end
end
local server, memory = section('server', missing), section('memory', missing)
for name in pairs(missing) do
  names[#names + 1] = name
end
table.sort(names)
return { time[1], time[2], server, memory, names }
