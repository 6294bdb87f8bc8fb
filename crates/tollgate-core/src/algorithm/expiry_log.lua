-- The mirror of expiry_log.rs: units, each with the instant at which it ends.
--
-- An end may be 732 days after the last instant, and so beyond 2^53. Therefore an expiry log counts
-- from its own epoch, 10^14 microseconds (1,157 days) after Unix's. Every difference and comparison
-- is the same, and every end is exact. A receipt's `mark_us` also counts from that epoch; its
-- `at_us` is an ordinary instant.
--
-- Value: records of 14 bytes, an instant and a number of units, 7 bytes each, big-endian. Record 0
-- has the latest instant counted and the total. The entries follow from record 1 on, in order of
-- their ends. Entries stay packed while in use, so a decision reads only those it needs. Redis
-- hashes every byte of every string that a script creates, about a nanosecond each. So the state
-- keeps the value as it was read, with the number of the first live entry, and creates a new string
-- only if an entry changes.

local EXPIRY_LOG_EPOCH_US = 100000000000000
local RECORD, RECORD_BYTES = '>i7I7', 14

local function expiry_log_decode(value)
  local latest, total = -EXPIRY_LOG_EPOCH_US, 0
  if value then
    assert(#value % RECORD_BYTES == 0)
    latest, total = struct.unpack(RECORD, value)
  end
  local records = value or struct.pack(RECORD, latest, total)
  return { latest = latest, total = total, records = records, first = 1 }
end

local function expiry_log_encode(state)
  local entries = string.sub(state.records, state.first * RECORD_BYTES + 1)
  return struct.pack(RECORD, state.latest, state.total) .. entries
end

-- The number of the last entry; one less than the first if there are no entries.
local function expiry_log_last(state)
  return #state.records / RECORD_BYTES - 1
end

-- The end and the units of an entry.
local function expiry_log_entry(state, i)
  local ends, units = struct.unpack(RECORD, state.records, i * RECORD_BYTES + 1)
  return ends, units
end

-- Replaces the entries `from` to `to` with one entry, or with none if `units` is zero. If `to` is
-- `from - 1`, the entry is inserted before `from`.
local function expiry_log_splice(state, from, to, ends, units)
  local entry = units > 0 and struct.pack(RECORD, ends, units) or ''
  if from > expiry_log_last(state) then
    state.records = state.records .. entry
    return
  end
  state.records = string.sub(state.records, 1, from * RECORD_BYTES)
    .. entry
    .. string.sub(state.records, (to + 1) * RECORD_BYTES + 1)
end

-- The first entry that ends at `ends` or later.
local function expiry_log_position(state, ends)
  local low, high = state.first, expiry_log_last(state) + 1
  while low < high do
    local middle = floor((low + high) / 2)
    if expiry_log_entry(state, middle) < ends then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- The units that have not ended at `counted`, and the first such entry.
local function expiry_log_live(state, counted)
  local live, first = state.total, state.first
  for i = first, expiry_log_last(state) do
    local ends, units = expiry_log_entry(state, i)
    if ends > counted then
      break
    end
    live, first = live - units, i + 1
  end
  return live, first
end

-- Returns the end of the entry, from `first` on, by which at least `wanted` units have ended; else
-- `new_end`.
local function expiry_log_ended_after(state, first, wanted, new_end)
  for i = first, expiry_log_last(state) do
    local ends, units = expiry_log_entry(state, i)
    wanted = wanted - units
    if wanted <= 0 then
      return ends
    end
  end
  return new_end
end

-- Decides `cost` units that would end at `new_end`. `at` has the caller's instant `now`, the
-- counted instant `counted`, and `last_end`, the latest end of an entry. Differences are computed
-- before sums, which could exceed 2^53.
local function expiry_log_decide(state, limit, at, cost, take, new_end)
  local live, first = expiry_log_live(state, at.counted)
  local admitted = cost == 0 or live + cost <= limit
  local taken = admitted and take and cost or 0
  local after = live + taken
  local remaining = max(0, limit - after)
  local function until_us(ends)
    return min(max(0, min(ends, at.last_end) - at.now), MAX_US)
  end
  local retry, more, newest = nil, nil, at.counted
  if admitted then
    retry = 0
  elseif cost <= limit then
    retry = until_us(expiry_log_ended_after(state, first, live - (limit - cost), new_end))
  end
  if remaining < limit then
    more = until_us(expiry_log_ended_after(state, first, after - (limit - remaining - 1), new_end))
  end
  if after > 0 then
    newest = live > 0 and expiry_log_entry(state, expiry_log_last(state)) or new_end
    newest = taken > 0 and max(newest, new_end) or newest
  end
  return {
    admitted = admitted,
    limit = limit,
    remaining = remaining,
    retry_after_us = retry,
    reset_after_us = until_us(newest),
    delay_us = 0,
    more_after_us = more,
  }
end

-- Drops entries that ended by `counted`, then adds `units` that end at `ends`.
local function expiry_log_add(state, counted, ends, units)
  state.latest = max(state.latest, counted)
  local live, first = expiry_log_live(state, counted)
  state.first = first
  units = min(units, MAX_US - live)
  state.total = live + units
  if units == 0 then
    return
  end
  local at = expiry_log_position(state, ends)
  if at <= expiry_log_last(state) then
    local same, counted_units = expiry_log_entry(state, at)
    if same == ends then
      return expiry_log_splice(state, at, at, ends, counted_units + units)
    end
  end
  expiry_log_splice(state, at, at - 1, ends, units)
end

-- Removes `units` from the entry that ends at `ends`, unless that instant has passed.
local function expiry_log_remove(state, now, ends, units)
  local at = expiry_log_position(state, ends)
  if ends <= now or at > expiry_log_last(state) then
    return
  end
  local same, held = expiry_log_entry(state, at)
  if same == ends then
    units = min(units, held)
    state.total = state.total - units
    expiry_log_splice(state, at, at, ends, held - units)
  end
end

-- Clamps instants to `latest` and `last_end`, and keeps the counts. Returns whether anything
-- changed.
local function expiry_log_redate(state, latest, last_end)
  local from, last, late = expiry_log_position(state, last_end), expiry_log_last(state), false
  if from <= last and expiry_log_entry(state, last) > last_end then
    local units = 0
    for i = from, last do
      local _, held = expiry_log_entry(state, i)
      units = units + held
    end
    expiry_log_splice(state, from, last, last_end, units)
    late = true
  end
  local leapt = state.latest > latest
  state.latest = min(state.latest, latest)
  return leapt or late
end

local function expiry_log_idle_at_us(state)
  local last = expiry_log_last(state)
  local newest = last >= state.first and expiry_log_entry(state, last) or -EXPIRY_LOG_EPOCH_US
  return add(max(newest, state.latest), EXPIRY_LOG_EPOCH_US)
end
