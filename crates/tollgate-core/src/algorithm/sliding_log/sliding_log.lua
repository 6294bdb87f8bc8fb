-- The mirror of sliding_log/mod.rs. Value: a packed ledger.

local sliding_log = {
  params = window_params,
  encode = ledger_encode,
  decode = ledger_decode,
}

-- An entry dated more than one window ahead of the clock counts as dated one window ahead.
local function sliding_log_instants(params, state, now)
  now = now - LEDGER_EPOCH_US
  local latest = min(state.latest, now + params.window)
  return { now = now, counted = max(now, latest), last_end = now + 2 * params.window }
end

function sliding_log.redate(params, state, now)
  local at = sliding_log_instants(params, state, now)
  return ledger_redate(state, at.counted, at.last_end)
end

function sliding_log.admits(params, state, now, cost)
  local at = sliding_log_instants(params, state, now)
  return cost == 0 or ledger_live(state, at.counted) + cost <= params.limit
end

function sliding_log.decide(params, state, now, cost, take)
  local at = sliding_log_instants(params, state, now)
  return ledger_decide(state, params.limit, at, cost, take, at.counted + params.window)
end

function sliding_log.charge(params, state, now, cost)
  local at = sliding_log_instants(params, state, now)
  local ends = at.counted + params.window
  if cost > 0 then
    ledger_redate(state, at.counted, at.last_end)
    ledger_add(state, at.counted, ends, cost)
  end
  return { at_us = at.counted + LEDGER_EPOCH_US, mark_us = ends, mark_fraction = 0 }
end

function sliding_log.give_back(_, state, now, units, receipt)
  ledger_remove(state, now - LEDGER_EPOCH_US, receipt.mark_us, units)
end

function sliding_log.idle_at_us(_, state)
  return ledger_idle_at_us(state)
end
