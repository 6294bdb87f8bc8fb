-- The mirror of sliding_window/mod.rs. Value: as in window.lua.

local sliding_window = { params = window_params, redate = window_redate }

-- The previous and the current count in window `index`, if the clock is in window `clock`.
local function sliding_window_counts(state, index, clock)
  if state.index == index or state.index > clock then
    return state.previous, state.current
  elseif state.index + 1 == index then
    return state.current, 0
  end
  return 0, 0
end

-- The time from the counted instant until `cost`, which is within the limit, fits. The cost is
-- subtracted from the limit first, since a counter plus a cost could exceed 2^53.
local function sliding_window_wait(params, previous, current, elapsed, cost)
  local window, room = params.window, params.limit - cost
  if current <= room then
    return muldiv_ceil(window, previous - (room - current), previous) - elapsed
  end
  return (window - elapsed) + muldiv_ceil(window, current - room, current)
end

-- The weight of the previous window, rounded up.
local function sliding_window_weight(window, previous, elapsed)
  return muldiv_ceil(previous, window - elapsed, window)
end

function sliding_window.admits(params, state, now, cost)
  local window = params.window
  local index, elapsed, _, clock = place(now, window, state.index)
  local previous, current = sliding_window_counts(state, index, clock)
  local weight = sliding_window_weight(window, previous, elapsed)
  return cost == 0 or weight + current + cost <= params.limit
end

function sliding_window.decide(params, state, now, cost, take)
  local limit, window = params.limit, params.window
  local index, elapsed, ahead, clock = place(now, window, state.index)
  local previous, current = sliding_window_counts(state, index, clock)
  local weight = sliding_window_weight(window, previous, elapsed)
  local admitted = cost == 0 or weight + current + cost <= limit
  if admitted and take then
    current = current + cost
  end
  local remaining = max(0, limit - (weight + current))
  local function wait(units)
    return ahead + sliding_window_wait(params, previous, current, elapsed, units)
  end
  local retry
  if admitted then
    retry = 0
  elseif cost <= limit then
    retry = wait(cost)
  end
  local reset = ahead
  if current > 0 then
    reset = ahead + 2 * window - elapsed
  elseif previous > 0 then
    reset = ahead + window - elapsed
  end
  return {
    admitted = admitted,
    limit = limit,
    remaining = remaining,
    retry_after_us = retry,
    reset_after_us = reset,
    delay_us = 0,
    more_after_us = remaining < limit and wait(remaining + 1) or nil,
  }
end

function sliding_window.charge(params, state, now, cost)
  local index, _, ahead, clock = place(now, params.window, state.index)
  if cost > 0 then
    local previous, current = sliding_window_counts(state, index, clock)
    state.index, state.previous, state.current = index, previous, add(current, cost)
  end
  return { at_us = now + ahead, mark_us = 0, mark_fraction = 0 }
end

function sliding_window.give_back(params, state, now, units, receipt)
  local charged = div_rem(receipt.at_us, params.window)
  if div_rem(now, params.window) > charged + 1 then
    return
  end
  if state.index == charged then
    state.current = max(0, state.current - units)
  elseif state.index == charged + 1 then
    state.previous = max(0, state.previous - units)
  end
end

function sliding_window.idle_at_us(params, state)
  local windows = 0
  if state.current > 0 then
    windows = 2
  elseif state.previous > 0 then
    windows = 1
  end
  return min((state.index + windows) * params.window, MAX_US)
end

function sliding_window.encode(state)
  return window_encode(state.index, state.previous, state.current)
end

function sliding_window.decode(value)
  local index, previous, current = window_decode(value)
  return { index = index, previous = previous, current = current }
end
