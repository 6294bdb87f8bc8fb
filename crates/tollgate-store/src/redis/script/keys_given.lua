-- Reads the keys, of several slots of this server, that follow the fifth argument. A key that the
-- server does not have ends the script here, before it has written anything. A key of another type
-- counts as missing, as `MGET` has it.

-- Lua grows a table that is filled entry by entry, but makes one of a list at once.
local keys, values, get = { unpack(ARGV, 6) }, { unpack(ARGV, 6) }, redis.pcall
for i = 1, #keys do
  local value = get('GET', keys[i])
  if type(value) == 'table' then
    value = redis.call('MGET', keys[i])[1]
  end
  values[i] = value
end
