-- Applies changes. Follows the mirrors, cells.lua and changes.lua. ARGV[5] is their program.

local program = cmsgpack.unpack(ARGV[5])
return apply(instant(ARGV[1]), tonumber(ARGV[2]), limits_of(ARGV[3]), penalties_of(ARGV[4]), program)
