-- Resets the ledger of a leased limit. KEYS[1] is its book, KEYS[2] its state, which reset.lua
-- resets next. Both change in one call: a node that asks in between would restore one from the
-- other.
--
-- Holders can still spend their units, but must not return them: everything granted counts as
-- returned. The book stays, since a missing book means that the store lost writes.

local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if #all[i] > 1 then
    local granted, rest = string.match(all[i + 1], '^(%d+):%d+(:.*)$')
    redis.call('HSET', KEYS[1], all[i], granted .. ':' .. granted .. rest)
  end
end
redis.call('HDEL', KEYS[1], 's')
local STATES = { KEYS[2] }
