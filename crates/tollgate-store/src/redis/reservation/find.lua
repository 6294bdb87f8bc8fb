-- Returns whether a reservation has ended (1), and its body; or nothing. Follows cells.lua and
-- record.lua.

local record = live(redis.call('GET', KEYS[1]), instant(ARGV[1]))
return record and { has_ended(record) and 1 or 0, body_of(record) } or false
