-- The mirror of bucket.rs: the functions that gcra, token bucket and leaky bucket share.
--
-- Rust measures in units of `1 / scale` microseconds, which needs 128 bits. Here every span of time
-- is a pair: whole microseconds and a fraction below `scale`. Where Rust subtracts the full
-- capacity from a larger backlog, this code computes the span of the capacity less the cost. So no
-- value exceeds 2^53.

local function gcd(a, b)
  while b ~= 0 do
    a, b = b, a % b
  end
  return a
end

-- `count` units per `period` microseconds, with `burst` units ahead of the pace and `queue` units
-- that wait.
local function bucket_params(count, period, burst, queue)
  if count == 0 then
    return { interval = 0, scale = 1, count = 0, capacity = 0, burst = 0 }
  end
  local common = gcd(count, period)
  return {
    interval = period / common,
    scale = count / common,
    count = count,
    capacity = burst + (queue or 0),
    burst = burst,
  }
end

-- `units * E`: at most 100 years within the capacity, saturating beyond it.
local function bucket_span(params, units)
  return muldiv(units, params.interval, params.scale)
end

-- Whether the first span is longer than the second.
local function longer(whole, fraction, than_whole, than_fraction)
  return whole > than_whole or (whole == than_whole and fraction > than_fraction)
end

-- The first span minus the second, which must not be longer.
local function less(params, whole, fraction, by_whole, by_fraction)
  if fraction < by_fraction then
    return whole - by_whole - 1, fraction + params.scale - by_fraction
  end
  return whole - by_whole, fraction - by_fraction
end

-- The sum of two spans, saturating.
local function plus(params, whole, fraction, by_whole, by_fraction)
  local sum = fraction + by_fraction
  if sum >= params.scale then
    return add(whole + by_whole, 1), sum - params.scale
  end
  return add(whole, by_whole), sum
end

local function ceil_us(whole, fraction)
  return fraction > 0 and whole + 1 or whole
end

-- The time that the key has spent beyond `now`. A fraction written under another count is rounded
-- up.
local function bucket_backlog(params, tat, now)
  local us, fraction = tat.us, tat.fraction
  if fraction > 0 and tat.count ~= params.count then
    us, fraction = us + 1, 0
  end
  if us < now then
    return 0, 0
  end
  return us - now, fraction
end

local function bucket_set(params, tat, now, whole, fraction)
  local us = now + whole
  if us >= MAX_US then
    us, fraction = MAX_US, 0
  end
  tat.us, tat.fraction, tat.count = us, fraction, fraction > 0 and params.count or 0
end

-- The number of units that still fit beside the backlog.
local function bucket_remaining(params, whole, fraction)
  local full, rest = bucket_span(params, params.capacity)
  if params.interval == 0 or longer(whole, fraction, full, rest) then
    return 0
  end
  whole, fraction = less(params, full, rest, whole, fraction)
  local units, part = muldiv(whole, params.scale, params.interval)
  return units + div_rem(part + fraction, params.interval)
end

-- The time until the backlog leaves room for `units`, which do not fit yet.
local function bucket_until(params, whole, fraction, units)
  return ceil_us(less(params, whole, fraction, bucket_span(params, params.capacity - units)))
end

-- The delay of a request that raises the backlog to this value: the part above the burst queues.
local function bucket_delay(params, whole, fraction)
  local undelayed, rest = bucket_span(params, params.burst)
  if longer(whole, fraction, undelayed, rest) then
    return ceil_us(less(params, whole, fraction, undelayed, rest))
  end
  return 0
end

-- Whether `cost` fits beside the backlog.
local function bucket_admits(params, whole, fraction, cost)
  local capacity = params.capacity
  return cost == 0
    or (cost <= capacity and not longer(whole, fraction, bucket_span(params, capacity - cost)))
end

-- Decides for a backlog at the counted instant, which is `ahead` after the caller's. Durations
-- start at the caller's instant.
local function bucket_decide(params, whole, fraction, ahead, cost, take)
  local capacity = params.capacity
  local admitted = bucket_admits(params, whole, fraction, cost)
  local retry, delay = nil, 0
  if admitted then
    retry = 0
  elseif cost <= capacity then
    retry = add(bucket_until(params, whole, fraction, cost), ahead)
  end
  if admitted and cost > 0 then
    local wanted, rest = plus(params, whole, fraction, bucket_span(params, cost))
    delay = bucket_delay(params, wanted, rest)
    if delay > 0 then
      delay = add(delay, ahead)
    end
    if take then
      whole, fraction = wanted, rest
    end
  end
  local remaining = bucket_remaining(params, whole, fraction)
  return {
    admitted = admitted,
    limit = capacity,
    remaining = remaining,
    retry_after_us = retry,
    reset_after_us = add(ceil_us(whole, fraction), ahead),
    delay_us = delay,
    more_after_us = remaining < capacity
        and add(bucket_until(params, whole, fraction, remaining + 1), ahead)
      or nil,
  }
end

-- Charges `cost` at `now`, even beyond the capacity.
local function bucket_charge(params, tat, now, cost)
  if cost > 0 then
    local whole, fraction = bucket_backlog(params, tat, now)
    bucket_set(params, tat, now, plus(params, whole, fraction, bucket_span(params, cost)))
  end
  return { at_us = now, mark_us = tat.us, mark_fraction = tat.fraction }
end

-- Computes `TAT -= max(0, units * E - (now - charged))`. Elapsed time and TAT together stay below
-- 2^54 - 1, which may exceed 2^53. So half of the span is computed exactly, and added twice.
local function bucket_give_back(params, tat, now, units, receipt)
  local queues = params.capacity > params.burst
  if queues and (receipt.mark_us ~= tat.us or receipt.mark_fraction ~= tat.fraction) then
    return
  end
  local half, rest = muldiv(units, params.interval, 2 * params.scale)
  local odd, part = div_rem(rest, params.scale)
  local returned = half - max(0, now - receipt.at_us) + half + odd
  if not longer(returned, part, 0, 0) then
    return
  end
  local whole, fraction = bucket_backlog(params, tat, 0)
  if longer(returned, part, whole, fraction) then
    whole, fraction, returned, part = 0, 0, 0, 0
  end
  bucket_set(params, tat, 0, less(params, whole, fraction, returned, part))
end

-- The time in which a full bucket drains, rounded up; and the period. Both need a rate.
local function bucket_window(params)
  if not params.full_us then
    params.full_us = ceil_us(bucket_span(params, params.capacity))
    params.period_us = params.interval * (params.count / params.scale)
  end
  return params.full_us, params.period_us
end

local function bucket_idle_at_us(tat)
  return ceil_us(tat.us, tat.fraction)
end

-- Packs a TAT: seven bytes for the microseconds. Unless the fraction is zero, the fraction and the
-- count follow, in as few bytes each as the count needs. Big-endian.
local function tat_pack(tat)
  if tat.fraction == 0 then
    return struct.pack('>I7', tat.us)
  end
  local bytes, above = 1, 256
  while above <= tat.count do
    bytes, above = bytes + 1, above * 256
  end
  return struct.pack('>I7I' .. bytes .. 'I' .. bytes, tat.us, tat.fraction, tat.count)
end

-- Unpacks what `tat_pack` wrote at the end of `value`, from byte `at` on.
local function tat_unpack(value, at)
  local bytes = (#value - at - 6) / 2
  assert(bytes >= 0 and bytes <= 4 and bytes % 1 == 0)
  local tat = { us = struct.unpack('>I7', value, at), fraction = 0, count = 0 }
  if bytes > 0 then
    tat.fraction, tat.count = struct.unpack('>I' .. bytes .. 'I' .. bytes, value, at + 7)
  end
  return tat
end

-- The state of gcra and leaky bucket is a TAT with `ahead`, the most that the TAT is ahead of its
-- charge. Zero means one period.
--
-- A whole TAT without `ahead` is stored as a decimal, which Redis keeps as an integer without a
-- string. Any other state is packed, with `ahead` first. An instant has 53 of 56 bits, so a packed
-- value begins with a byte below 32, which is not a digit. A packed TAT has an odd number of bytes,
-- and `ahead` has seven.
local function dated_tat_encode(tat)
  if tat.ahead > 0 then
    return struct.pack('>I7', tat.ahead) .. tat_pack(tat)
  end
  return tat.fraction == 0 and digits(tat.us) or tat_pack(tat)
end

local function dated_tat_decode(value)
  if value and string.byte(value) < 32 then
    local dated = #value % 2 == 0
    local tat = tat_unpack(value, dated and 8 or 1)
    tat.ahead = dated and struct.unpack('>I7', value) or 0
    return tat
  end
  assert(not value or string.find(value, '^%d+$'))
  return { us = tonumber(value or 0), fraction = 0, count = 0, ahead = 0 }
end

-- Records that a charge at `now` produced the TAT.
local function bucket_date(params, tat, now)
  local full, period = bucket_window(params)
  local ahead = max(ceil_us(tat.us, tat.fraction) - now, full)
  tat.ahead = ahead ~= period and ahead or 0
end

-- Corrects a TAT whose charge was dated too far ahead, as if the charge were made now.
local function bucket_redate(params, tat, now)
  local idle = ceil_us(tat.us, tat.fraction)
  if params.interval == 0 or idle <= now + LEAP_US_MIN then
    return false
  end
  local full, period = bucket_window(params)
  local ahead = tat.ahead > 0 and tat.ahead or period
  if idle - ahead <= now + max(full, LEAP_US_MIN) then
    return false
  end
  tat.us, tat.fraction, tat.count = now + ahead, 0, 0
  return true
end

-- An algorithm whose params are a bucket and whose value is a dated TAT only.
local keeps_a_tat = {
  params = bucket_params,
  redate = bucket_redate,
  give_back = bucket_give_back,
  encode = dated_tat_encode,
  decode = dated_tat_decode,
}

function keeps_a_tat.admits(params, tat, now, cost)
  local whole, fraction = bucket_backlog(params, tat, now)
  return bucket_admits(params, whole, fraction, cost)
end

function keeps_a_tat.decide(params, tat, now, cost, take)
  local whole, fraction = bucket_backlog(params, tat, now)
  return bucket_decide(params, whole, fraction, 0, cost, take)
end

function keeps_a_tat.charge(params, tat, now, cost)
  if cost > 0 then
    -- Otherwise the clock error would count as a debt.
    bucket_redate(params, tat, now)
  end
  local receipt = bucket_charge(params, tat, now, cost)
  if cost > 0 and params.interval > 0 then
    bucket_date(params, tat, now)
  end
  return receipt
end

function keeps_a_tat.idle_at_us(_, tat)
  return bucket_idle_at_us(tat)
end
