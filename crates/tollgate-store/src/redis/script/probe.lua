-- What an operator wants to know of a server, and which of the commands that the other scripts use
-- it refuses. KEYS[1] is nobody's. ARGV[5] says whether there are leases, whose scripts use more.
--
-- Answers with the server's time, what it says of itself and of its memory, and the names of the
-- commands that it refuses, with the reason where it is not for want of rights.

local COMMANDS = {
  { 'GET', KEYS[1] },
  { 'MGET', KEYS[1] },
  { 'SET', KEYS[1], '', 'PX', '1' },
  { 'INCRBY', KEYS[1], '' },
}
local OF_LEASES = {
  { 'HMGET', KEYS[1], 'm' },
  { 'HSET', KEYS[1], 'm', '' },
  { 'HDEL', KEYS[1], 'm' },
  { 'HLEN', KEYS[1] },
  { 'HGETALL', KEYS[1] },
  { 'PEXPIRE', KEYS[1], '1' },
}

-- What is no number is not added, and what is no hash has no fields, so that nothing is left behind
-- without an end.
local function refused(reply)
  return type(reply) == 'table' and reply.err ~= nil
    and not string.find(reply.err, 'not an integer', 1, true)
    and not string.find(reply.err, 'WRONGTYPE', 1, true)
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
local function try(command)
  local reply = redis.pcall(unpack(command))
  if refused(reply) then
    -- Rights are refused with one of these two codes; any other is the reason.
    local code = string.match(reply.err, '^%-?(%u+)')
    local reason = code and code ~= 'ERR' and code ~= 'NOPERM' and ' (' .. code .. ')' or ''
    local keys = reply.err:find('access') and reply.err:find('key')
    missing[keys and 'KEYS' or command[1] .. reason] = true
  end
  return not refused(reply)
end
local writes = true
for _, command in ipairs(COMMANDS) do
  writes = try(command) and writes
end
if cmsgpack.unpack(ARGV[5])[1] == 1 then
  for _, command in ipairs(OF_LEASES) do
    -- Without what is in its place, a hash would be made.
    if writes or command[1] ~= 'HSET' then
      try(command)
    end
  end
end
try({ 'UNLINK', KEYS[1] })
local server, memory = section('server', missing), section('memory', missing)
for name in pairs(missing) do
  names[#names + 1] = name
end
table.sort(names)
return { time[1], time[2], server, memory, names }
