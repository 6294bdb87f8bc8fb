-- Reports a server's time and INFO, and which commands of the other scripts it refuses. KEYS[1] is
-- unused by others. ARGV[5] says whether there are leases, whose scripts use more commands.
--
-- Returns the server's time, its INFO server and memory, and the commands that it refuses, with the
-- reason unless a right is missing.

local COMMANDS = {
  { 'GET', KEYS[1] },
  { 'MGET', KEYS[1] },
  { 'SET', KEYS[1], '', 'PX', '1' },
  { 'INCRBY', KEYS[1], '' },
  { 'PTTL', KEYS[1] },
}
local OF_LEASES = {
  { 'HMGET', KEYS[1], 'm' },
  { 'HSET', KEYS[1], 'm', '' },
  { 'HDEL', KEYS[1], 'm' },
  { 'HLEN', KEYS[1] },
  { 'HGETALL', KEYS[1] },
  { 'PEXPIRE', KEYS[1], '1' },
}

-- KEYS[1] holds an empty string, so INCRBY and hash commands fail and leave nothing without a TTL.
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
    -- ERR and NOPERM mean missing rights; any other code is the reason.
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
    -- Without the string in its place, HSET would create a hash.
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
