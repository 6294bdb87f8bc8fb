-- The mirror of window.rs: where an instant lies among windows aligned to the epoch.

-- Returns the window to count in, how far into it, how far that lies after `now`, and the window of
-- `now` itself.
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

-- A window algorithm's numbers: `count` units per `period` microseconds.
local function window_params(count, period)
  return { limit = count, window = period }
end
