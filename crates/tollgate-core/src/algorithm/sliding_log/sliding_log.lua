-- The mirror of sliding_log/mod.rs. Value: a packed expiry log.

local sliding_log = {
  params = window_params,
  encode = expiry_log_encode,
  decode = expiry_log_decode,
}

-- An entry dated more than one window ahead counts as one window ahead.
local function sliding_log_instants(params, state, now)
  now = now - EXPIRY_LOG_EPOCH_US
  local latest = min(state.latest, now + params.window)
  return { now = now, counted = max(now, latest), last_end = now + 2 * params.window }
end

function sliding_log.redate(params, state, now)
  local at = sliding_log_instants(params, state, now)
  return expiry_log_redate(state, at.counted, at.last_end)
end

function sliding_log.admits(params, state, now, cost)
  local at = sliding_log_instants(params, state, now)
  return cost == 0 or expiry_log_live(state, at.counted) + cost <= params.limit
end

function sliding_log.decide(params, state, now, cost, take)
  local at = sliding_log_instants(params, state, now)
  return expiry_log_decide(state, params.limit, at, cost, take, at.counted + params.window)
end

function sliding_log.charge(params, state, now, cost)
  local at = sliding_log_instants(params, state, now)
  local ends = at.counted + params.window
  if cost > 0 then
    expiry_log_redate(state, at.counted, at.last_end)
    expiry_log_add(state, at.counted, ends, cost)
  end
  return { at_us = at.counted + EXPIRY_LOG_EPOCH_US, mark_us = ends, mark_fraction = 0 }
end

function sliding_log.give_back(_, state, now, units, receipt)
  expiry_log_remove(state, now - EXPIRY_LOG_EPOCH_US, receipt.mark_us, units)
end

function sliding_log.idle_at_us(_, state)
  return expiry_log_idle_at_us(state)
end
