-- Reads the declared keys.

local keys = KEYS
local values = redis.call('MGET', unpack(keys))
