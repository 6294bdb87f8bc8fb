-- Opens a reservation, unless its id is in use. Follows cells.lua and record.lua.
--
-- ARGV[5] is a list: a list of its TTL in microseconds, and its body. Returns 1, or 0 if the id is
-- in use.

local now, ttl_margin = instant(ARGV[1]), tonumber(ARGV[2])
local given = cmsgpack.unpack(ARGV[5])
local ttl = given[1][1]
if live(redis.call('GET', KEYS[1]), now) then
  return 0
end
local record = 'O' .. struct.pack('>I7', now + ttl) .. given[2]
redis.call('SET', KEYS[1], record, 'PX', digits(math.ceil(ttl / 1000) + ttl_margin))
return 1
