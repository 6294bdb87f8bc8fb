-- Keeps a reservation, unless its name is taken. Follows cells.lua and record.lua.
--
-- ARGV[5] is a list: how long it is kept, in microseconds, in a list of its own; and its body.
-- Answers 1, or 0 for a name that is taken.

local now, spare = instant(ARGV[1]), tonumber(ARGV[2])
local given = cmsgpack.unpack(ARGV[5])
local ttl = given[1][1]
if live(redis.call('GET', KEYS[1]), now) then
  return 0
end
local record = 'O' .. struct.pack('>I7', now + ttl) .. given[2]
redis.call('SET', KEYS[1], record, 'PX', digits(math.ceil(ttl / 1000) + spare))
return 1
