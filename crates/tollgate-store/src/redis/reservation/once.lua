-- Applies the changes of a reservation's end in one slot, once. Follows cells.lua and changes.lua.
--
-- The marker of this end is the last of KEYS. ARGV[5] is a list: a list of the record's expiry,
-- which tells ends of one id apart, and of the marker's TTL in milliseconds; and the changes, as in
-- changes.lua.
--
-- Returns the answer to the changes. A repeated call gets the first answer.

local now, ttl_margin = instant(ARGV[1]), tonumber(ARGV[2])
local given = cmsgpack.unpack(ARGV[5])
local name, expiry = KEYS[#KEYS], struct.pack('>I7', given[1][1])
local marker = redis.call('GET', name)
if marker and string.sub(marker, 1, 7) == expiry then
  return cmsgpack.unpack(string.sub(marker, 8))
end
local reply = apply(now, ttl_margin, limits_of(ARGV[3]), penalties_of(ARGV[4]), given[2])
redis.call('SET', name, expiry .. cmsgpack.pack(reply), 'PX', digits(given[1][2] + ttl_margin))
return reply
