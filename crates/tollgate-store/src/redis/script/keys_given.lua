-- Reads the keys, of several slots of this server, that follow the fifth argument. A key that the
-- server does not have ends the script here, before it has written anything.

-- Lua grows a table that is filled entry by entry, but makes one of a list at once.
local keys, values, get = { unpack(ARGV, 6) }, { unpack(ARGV, 6) }, redis.call
for i = 1, #keys do
  values[i] = get('GET', keys[i])
end
