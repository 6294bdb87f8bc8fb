-- Resets states, and leaves the instant in their heads: a give-back of an earlier charge must not
-- return units of later ones. A missing key has no charges to give back. Follows params.lua.

local now, ttl_margin = instant(ARGV[1]), tonumber(ARGV[2])
local text = '@' .. digits(now)
local head = string.char(HEAD) .. struct.pack('>I7', 0) .. string.char(#text) .. text
for i = 1, #STATES do
  redis.call('SET', STATES[i], head, 'XX', 'PX', lasting(now + RESET_US, now, ttl_margin))
end
return 1
