-- The instant and the params of limits, which most scripts need. Follows step.lua and
-- kept_head.lua.
--
-- KEYS are distinct. ARGV[1] is the caller's instant, or empty for the server's; ARGV[2] the TTL
-- margin in milliseconds; ARGV[3] the params of limits, ARGV[4] the penalties, both flat arrays in
-- MessagePack.
--
-- A value is its algorithm's state. With a block, a penalty or a reset, a head stands in front of
-- it: byte 127, which starts no algorithm's state, the end of an operator's block in seven bytes,
-- the length of a text, and the text: the penalty's, then `@` and the instant of the reset.

local ALGORITHMS = {
  fixed_window, sliding_window, sliding_log, token_bucket, leaky_bucket, gcra, concurrency,
  calendar_window,
}
local HEAD = 127

-- The TTL, in milliseconds, of a key that matters until `idle`.
local function lasting(idle, now, ttl_margin)
  return digits(math.ceil(max(0, idle - idle % STEP_US + STEP_US - now) / 1000) + ttl_margin)
end

-- The server's time is read once: TIME differs within one script.
local function instant(given)
  if given ~= '' then
    return tonumber(given)
  end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- The limits: each an algorithm with its params. Windows and slots have a limit and a duration,
-- buckets what bucket_params makes, with the fraction in lowest terms. calendar_window.lua says
-- what the names mean for calendar windows.
local function limits_of(packed)
  local flat, all = cmsgpack.unpack(packed), {}
  for i = 1, #flat, 6 do
    local a, b = flat[i + 1], flat[i + 2]
    all[#all + 1] = {
      algorithm = ALGORITHMS[flat[i]],
      limit = a,
      window = b,
      ttl = b,
      interval = a,
      scale = b,
      count = flat[i + 3],
      capacity = flat[i + 4],
      burst = flat[i + 5],
    }
  end
  return all
end

-- Writes a key with a TTL in milliseconds, or with its present one if that must be kept and is
-- longer.
local function write(key, value, ttl_ms, kept_ms)
  if kept_ms and kept_ms > tonumber(ttl_ms) then
    redis.call('SET', key, value, 'KEEPTTL')
  else
    redis.call('SET', key, value, 'PX', ttl_ms)
  end
end

-- Splits a value into its head and the algorithm's state.
local function split(value)
  if value and string.byte(value) == HEAD then
    local at = 9 + string.byte(value, 9)
    local state = string.sub(value, at + 1)
    return string.sub(value, 1, at), state ~= '' and state or nil
  end
  return nil, value ~= '' and value or nil
end
