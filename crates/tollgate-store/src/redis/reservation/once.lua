-- Applies the changes of a reservation's end in one slot, once. Follows cells.lua and changes.lua.
--
-- The marker of this end is the last of KEYS. ARGV[5] is a list: a list of the expiry of the open
-- record, which tells reservations of one id apart, and of the marker's TTL in milliseconds; and
-- the changes, as in changes.lua.
--
-- Returns the answer to the changes. A repeated call gets the first answer, even if the primary of
-- the record lost the end and the record was ended again, later or otherwise.

local now, ttl_margin = instant(ARGV[1]), tonumber(ARGV[2])
local given = cmsgpack.unpack(ARGV[5])
local name, open_until = KEYS[#KEYS], struct.pack('>I7', given[1][1])
local marker, reply = redis.call('GET', name), nil
if marker and string.sub(marker, 1, 7) == open_until then
  reply = cmsgpack.unpack(string.sub(marker, 8))
else
  reply = apply(now, ttl_margin, limits_of(ARGV[3]), penalties_of(ARGV[4]), given[2])
  marker = open_until .. cmsgpack.pack(reply)
end
-- A record that is ended again lives longer than at first.
redis.call('SET', name, marker, 'PX', digits(given[1][2] + ttl_margin))
return reply
