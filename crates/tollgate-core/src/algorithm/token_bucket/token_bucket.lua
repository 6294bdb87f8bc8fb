-- The mirror of token_bucket/mod.rs. Value, packed: the latest instant counted in seven bytes, then
-- the TAT at which the bucket is full.

local token_bucket = { params = bucket_params }

function token_bucket.redate(params, state, now)
  local by = state.latest_us - now
  if by <= LEAP_US_MIN or (params.interval > 0 and by <= bucket_window(params)) then
    return false
  end
  local full = state.full
  if full.us < by then
    full.us, full.fraction, full.count = 0, 0, 0
  else
    full.us = full.us - by
  end
  state.latest_us = now
  return true
end

function token_bucket.admits(params, state, now, cost)
  local whole, fraction = bucket_backlog(params, state.full, max(now, state.latest_us))
  return bucket_admits(params, whole, fraction, cost)
end

function token_bucket.decide(params, state, now, cost, take)
  local counted = max(now, state.latest_us)
  local whole, fraction = bucket_backlog(params, state.full, counted)
  return bucket_decide(params, whole, fraction, counted - now, cost, take)
end

function token_bucket.charge(params, state, now, cost)
  if cost > 0 then
    token_bucket.redate(params, state, now)
  end
  local counted = max(now, state.latest_us)
  if cost > 0 then
    state.latest_us = counted
  end
  return bucket_charge(params, state.full, counted, cost)
end

function token_bucket.give_back(params, state, now, units, receipt)
  bucket_give_back(params, state.full, max(now, state.latest_us), units, receipt)
end

function token_bucket.idle_at_us(_, state)
  return max(bucket_idle_at_us(state.full), state.latest_us)
end

function token_bucket.encode(state)
  return struct.pack('>I7', state.latest_us) .. tat_pack(state.full)
end

function token_bucket.decode(value)
  if not value then
    return { latest_us = 0, full = { us = 0, fraction = 0, count = 0 } }
  end
  return { latest_us = struct.unpack('>I7', value), full = tat_unpack(value, 8) }
end
