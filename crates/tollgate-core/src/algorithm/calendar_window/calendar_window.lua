-- The mirror of calendar_window/mod.rs, for three consecutive windows. Value: `start:count`, the
-- start in seconds.
--
-- params.lua names the parameters: `window` is the first second of the first window. `count`,
-- `capacity` and `burst` are the lengths of the three windows in seconds.

local CALENDAR_SECOND = 1000000
local calendar_window = {}

function calendar_window.params(limit, first, one, two, three)
  return { limit = limit, window = first, count = one, capacity = two, burst = three }
end

-- Returns the first second of the window that contains a second, and the first second after the
-- window.
local function calendar_bounds(params, at)
  local first = params.window
  if at < first then
    local length = max(params.count, 1)
    local before, rest = div_rem(first - at, length)
    if rest > 0 then
      before = before + 1
    end
    return max(0, first - before * length), max(0, first - (before - 1) * length)
  end
  local second = first + params.count
  local third = second + params.capacity
  local last = third + params.burst
  if at < second then
    return first, second
  elseif at < third then
    return second, third
  elseif at < last then
    return third, last
  end
  local start = last + div_rem(at - last, params.burst) * params.burst
  return start, start + params.burst
end

local function calendar_second(us)
  return (div_rem(us, CALENDAR_SECOND))
end

-- Returns the start of the counted window, its end and the instant of the charge in microseconds,
-- and the count of the window so far.
local function calendar_place(params, state, now)
  local start, ends = calendar_bounds(params, calendar_second(now))
  if state.start < ends then
    return start, ends * CALENDAR_SECOND, now, state.start >= start and state.count or 0
  end
  local _, last = calendar_bounds(params, ends)
  return ends, last * CALENDAR_SECOND, ends * CALENDAR_SECOND, state.count
end

function calendar_window.redate(params, state, now)
  local _, next_start = calendar_bounds(params, calendar_second(now))
  local late = state.start > next_start
  state.start = min(state.start, next_start)
  return late
end

function calendar_window.admits(params, state, now, cost)
  local _, _, _, count = calendar_place(params, state, now)
  return cost == 0 or count + cost <= params.limit
end

function calendar_window.decide(params, state, now, cost, take)
  local _, ends, _, count = calendar_place(params, state, now)
  local admitted = cost == 0 or count + cost <= params.limit
  local after = admitted and take and count + cost or count
  local left = ends - now
  local retry
  if admitted then
    retry = 0
  elseif cost <= params.limit then
    retry = left
  end
  return {
    admitted = admitted,
    limit = params.limit,
    remaining = max(0, params.limit - after),
    retry_after_us = retry,
    reset_after_us = left,
    delay_us = 0,
    more_after_us = after > 0 and params.limit > 0 and left or nil,
  }
end

function calendar_window.charge(params, state, now, cost)
  local start, _, at, count = calendar_place(params, state, now)
  if cost > 0 then
    state.start, state.count = start, add(count, cost)
  end
  return { at_us = at, mark_us = 0, mark_fraction = 0 }
end

function calendar_window.give_back(params, state, now, units, receipt)
  local start, ends = calendar_bounds(params, calendar_second(receipt.at_us))
  if start <= state.start and state.start < ends and calendar_second(now) < ends then
    state.count = max(0, state.count - units)
  end
end

function calendar_window.idle_at_us(params, state)
  local ends = state.start
  if state.count > 0 then
    local _, last = calendar_bounds(params, state.start)
    ends = last
  end
  return min(ends * CALENDAR_SECOND, MAX_US)
end

function calendar_window.encode(state)
  return digits(state.start) .. ':' .. digits(state.count)
end

function calendar_window.decode(value)
  local start, count = string.match(value or '0:0', '^(%d+):(%d+)$')
  return { start = tonumber(assert(start)), count = tonumber(count) }
end
