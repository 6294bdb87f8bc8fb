-- Answers with a field of somebody else's hash. ARGV[5] is a list with its name.

return redis.call('HGET', KEYS[1], cmsgpack.unpack(ARGV[5])[1])
