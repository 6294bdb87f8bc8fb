-- The mirror of concurrency/mod.rs. Value: a packed expiry log.

local concurrency = { encode = expiry_log_encode, decode = expiry_log_decode }

-- A limit of `slots`, each held for at most `ttl` microseconds.
function concurrency.params(slots, ttl)
  return { limit = slots, ttl = ttl }
end

-- In a log that a clock dated ahead, every slot ends too late. Each is moved to end one time to
-- live from now.
function concurrency.redate(params, state, now)
  now = now - EXPIRY_LOG_EPOCH_US
  return state.latest > now + max(params.ttl, LEAP_US_MIN)
    and expiry_log_redate(state, now, now + params.ttl)
end

local function concurrency_instants(state, now)
  now = now - EXPIRY_LOG_EPOCH_US
  return { now = now, counted = max(now, state.latest), last_end = math.huge }
end

function concurrency.admits(params, state, now, cost)
  local at = concurrency_instants(state, now)
  return cost == 0 or expiry_log_live(state, at.counted) + cost <= params.limit
end

function concurrency.decide(params, state, now, cost, take)
  local at = concurrency_instants(state, now)
  local outcome = expiry_log_decide(state, params.limit, at, cost, take, at.counted + params.ttl)
  -- Slots are freed when work ends, so the time of the next free slot is unknown.
  outcome.more_after_us = nil
  return outcome
end

function concurrency.charge(params, state, now, cost)
  if cost > 0 then
    concurrency.redate(params, state, now)
  end
  local counted = concurrency_instants(state, now).counted
  local ends = counted + params.ttl
  if cost > 0 then
    expiry_log_add(state, counted, ends, cost)
  end
  return { at_us = counted + EXPIRY_LOG_EPOCH_US, mark_us = ends, mark_fraction = 0 }
end

function concurrency.give_back(_, state, now, units, receipt)
  expiry_log_remove(state, now - EXPIRY_LOG_EPOCH_US, receipt.mark_us, units)
end

function concurrency.idle_at_us(_, state)
  return expiry_log_idle_at_us(state)
end
