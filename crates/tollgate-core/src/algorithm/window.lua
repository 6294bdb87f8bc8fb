-- The mirror of window.rs: the position of an instant among windows aligned to the epoch.

-- Returns the window to count in, the time since its start, the time from `now` to the counted
-- instant, and the window of `now` itself.
local function place(now, window, state_index)
  local index, elapsed = div_rem(now, window)
  if state_index <= index then
    return index, elapsed, 0, index
  end
  return index + 1, 0, window - elapsed, index
end

-- Moves state dated more than one window ahead of `now` to one window ahead, as `place` does.
local function window_redate(params, state, now)
  local ahead = div_rem(now, params.window) + 1
  local late = state.index > ahead
  state.index = min(state.index, ahead)
  return late
end

-- The params of a window algorithm: `count` units per `period` microseconds.
local function window_params(count, period)
  return { limit = count, window = period }
end

-- Packs a value: index and window in six bytes each, previous and current count in four each, or in
-- seven if one needs more. Big-endian, so the value begins with a byte below 32. The window is
-- zero, unless the key's TTL already lasts until the counts are idle under that window. Then a
-- script that counts in the same window need not change the TTL. No decision reads the window.
local function window_encode(index, previous, current)
  local long = max(previous, current) >= 4294967296
  return struct.pack(long and '>I6I6I7I7' or '>I6I6I4I4', index, 0, previous, current)
end

local function window_decode(value)
  if not value then
    return 0, 0, 0
  end
  assert(#value == 20 or #value == 26)
  local index, _, previous, current = struct.unpack(#value == 26 and '>I6I6I7I7' or '>I6I6I4I4', value)
  return index, previous, current
end
