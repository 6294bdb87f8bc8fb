-- Answers with a reservation's body, or nothing. Follows cells.lua and record.lua.

local record = live(redis.call('GET', KEYS[1]), instant(ARGV[1]))
return record and body_of(record) or false
