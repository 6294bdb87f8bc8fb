-- Saves the answer of a reservation's end. Follows cells.lua and record.lua.
--
-- ARGV[5] is a list: the reservation's body, and the answer. A missing record saves nothing.

local given = cmsgpack.unpack(ARGV[5])
local record = live(redis.call('GET', KEYS[1]), instant(ARGV[1]))
if record and has_ended(record) and body_of(record) == given[1] then
  local packed = cmsgpack.pack({ given[2] })
  local head = string.sub(record, 1, 22) .. struct.pack('>I4', #packed)
  redis.call('SET', KEYS[1], head .. packed .. given[1], 'KEEPTTL')
end
return 1
