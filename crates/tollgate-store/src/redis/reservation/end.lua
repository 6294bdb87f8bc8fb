-- Ends a reservation and applies its changes, or repeats the answer of its first end. Follows
-- cells.lua, changes.lua and record.lua.
--
-- The record is the last of KEYS. ARGV[5] is a list: the body that the changes belong to; a list of
-- the end and for how long it can be repeated; and the changes, as in changes.lua.
--
-- Returns the end that counts, the expiry of the open record, the milliseconds until that of the
-- ended one, and the answer; or nothing, if there is no such reservation.

local now, ttl_margin = instant(ARGV[1]), tonumber(ARGV[2])
local given = cmsgpack.unpack(ARGV[5])
local name = KEYS[#KEYS]
local record = live(redis.call('GET', name), now)
if not record or body_of(record) ~= given[1] then
  return false
end
local function ended(expires, ends, open_until, reply)
  return { digits(ends), digits(open_until), digits(math.ceil((expires - now) / 1000)), reply }
end
if has_ended(record) then
  local expires, ends, open_until, size = struct.unpack('>I7I7I7I4', record, 2)
  return ended(expires, ends, open_until, cmsgpack.unpack(string.sub(record, 27, 26 + size)))
end
local ends = given[2][1]
local reply = apply(now, ttl_margin, limits_of(ARGV[3]), penalties_of(ARGV[4]), given[3])
local packed = cmsgpack.pack(reply)
local open_until = struct.unpack('>I7', record, 2)
local expires = max(open_until, now + given[2][2])
local head = 'E' .. struct.pack('>I7I7I7I4', expires, ends, open_until, #packed)
local left = digits(math.ceil((expires - now) / 1000) + ttl_margin)
redis.call('SET', name, head .. packed .. given[1], 'PX', left)
return ended(expires, ends, open_until, reply)
