-- The mirror of fixed_window/mod.rs. Value: as in window.lua, without a previous count.

local fixed_window = { params = window_params, redate = window_redate }

-- The count in window `index`, if the clock is in window `clock`.
local function fixed_window_count(state, index, clock)
  return (state.index == index or state.index > clock) and state.count or 0
end

function fixed_window.admits(params, state, now, cost)
  local index, _, _, clock = place(now, params.window, state.index)
  return cost == 0 or fixed_window_count(state, index, clock) + cost <= params.limit
end

function fixed_window.decide(params, state, now, cost, take)
  local index, elapsed, ahead, clock = place(now, params.window, state.index)
  local count = fixed_window_count(state, index, clock)
  local admitted = cost == 0 or count + cost <= params.limit
  local after = admitted and take and count + cost or count
  local window_end = ahead + (params.window - elapsed)
  local retry
  if admitted then
    retry = 0
  elseif cost <= params.limit then
    retry = window_end
  end
  return {
    admitted = admitted,
    limit = params.limit,
    remaining = max(0, params.limit - after),
    retry_after_us = retry,
    reset_after_us = window_end,
    delay_us = 0,
    more_after_us = after > 0 and params.limit > 0 and window_end or nil,
  }
end

function fixed_window.charge(params, state, now, cost)
  local index, _, ahead, clock = place(now, params.window, state.index)
  if cost > 0 then
    state.count = add(fixed_window_count(state, index, clock), cost)
    state.index = index
  end
  return { at_us = now + ahead, mark_us = 0, mark_fraction = 0 }
end

function fixed_window.give_back(params, state, now, units, receipt)
  local charged = div_rem(receipt.at_us, params.window)
  if state.index == charged and div_rem(now, params.window) <= charged then
    state.count = max(0, state.count - units)
  end
end

function fixed_window.idle_at_us(params, state)
  local windows = state.count == 0 and 0 or 1
  return min((state.index + windows) * params.window, MAX_US)
end

function fixed_window.encode(state)
  return window_encode(state.index, 0, state.count)
end

function fixed_window.decode(value)
  local index, _, count = window_decode(value)
  return { index = index, count = count }
end
