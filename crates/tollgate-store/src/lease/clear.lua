-- An operator has a limit forget what was used of it. KEYS[1] is its book, KEYS[2] its state. Both
-- in one go: a node that asks in between would write one of them back into the other.
--
-- What processes hold they can still spend, and what they return has been forgotten already: so
-- everything that was granted counts as returned. The book itself stays, since its absence would
-- mean that the store lost something.

local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if #all[i] > 1 then
    local granted, rest = string.match(all[i + 1], '^(%d+):%d+(:.*)$')
    redis.call('HSET', KEYS[1], all[i], granted .. ':' .. granted .. rest)
  end
end
redis.call('HDEL', KEYS[1], 's')
redis.call('UNLINK', KEYS[2])
return 1
