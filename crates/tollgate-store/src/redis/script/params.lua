-- What every script needs: the instant, and the numbers in use. Follows step.lua.
--
-- KEYS are distinct. ARGV[1] is the caller's instant, or empty for the server's; ARGV[2] how long a
-- key outlives its use, in milliseconds; ARGV[3] the numbers in use, ARGV[4] the penalties, both
-- flat arrays in MessagePack.
--
-- A value is its algorithm's own, unless somebody was refused or blocked: then a head stands in
-- front of it, which begins with byte 127, as no algorithm's value does: the end of an operator's
-- block in seven bytes, the penalty's length and text.

local ALGORITHMS = {
  fixed_window, sliding_window, sliding_log, token_bucket, leaky_bucket, gcra, concurrency,
  calendar_window,
}
local HEAD = 127

-- How long a key is kept that makes a difference until `idle`, in milliseconds from `now` on.
local function lasting(idle, now, spare)
  return digits(math.ceil(max(0, idle - idle % STEP_US + STEP_US - now) / 1000) + spare)
end

-- Server time is read once: within a script it would differ from call to call.
local function instant(given)
  if given ~= '' then
    return tonumber(given)
  end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- Algorithms by number, each with its parameters: for windows and slots a limit and a length of
-- time, for buckets what bucket_params makes, with the fraction already in lowest terms.
-- calendar_window.lua says what these names mean for windows of the calendar.
local function numbers_of(packed)
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

-- Splits a value into its head, as it is, and the algorithm's part.
local function split(value)
  if value and string.byte(value) == HEAD then
    local at = 9 + string.byte(value, 9)
    local state = string.sub(value, at + 1)
    return string.sub(value, 1, at), state ~= '' and state or nil
  end
  return nil, value or nil
end
