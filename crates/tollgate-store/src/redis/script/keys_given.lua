-- Reads the keys, of several slots of this server, that follow the fifth argument. A key that the
-- server does not have ends the script here, before it has written anything.

local keys, values = {}, {}
for i = 6, #ARGV do
  keys[i - 5] = ARGV[i]
  values[i - 5] = redis.call('GET', ARGV[i])
end
