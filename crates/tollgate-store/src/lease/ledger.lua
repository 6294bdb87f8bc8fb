-- The store's side of a lease, for one limit and key: the mirror of ledger.rs. Follows the mirrors
-- and params.lua.
--
-- KEYS[1] is the limit's state, as the other scripts keep it; granted units count as used. KEYS[2]
-- is the book, a hash. `m` is the latest instant seen, the ledger's id, the end of the grace
-- period, the last sweep, when the book began, until when it is kept, the units granted and
-- returned by all holders, whether holders restored it, the number of the last call, the latest
-- lost call that a holder has reported, and the last call before entries were dropped. `s` is a
-- copy of the state, in case the state alone is lost. Every other field is a holder: units granted
-- and returned, both cumulative, the oldest grant it may not know of, when it was last seen, the
-- number of its last call, when to reclaim it.
--
-- ARGV[3] has the store's params; ARGV[5] is a flat array, in the order of the assignments below.

local raw, ttl_margin = instant(ARGV[1]), tonumber(ARGV[2])
local params, request = limits_of(ARGV[3])[1], cmsgpack.unpack(ARGV[5])
local name = struct.pack('>I4I4I4I4I6', request[1], request[2], request[3], request[4], request[5])
local ledger, known, want, need = request[6], request[7], request[8], request[9]
local returned, return_at = request[10], request[11]
local lifetime, grace, reclaim = request[12], request[13], request[14]
local their_granted, their_returned = request[15], request[16]
local their_calls, their_last_call = request[21], request[22]
local algorithm, book = params.algorithm, KEYS[2]
local fixed = algorithm == fixed_window
local windowed = fixed or algorithm == sliding_window

local found = redis.call('HMGET', book, 'm', 's', name)
local head, value = split(redis.call('GET', KEYS[1]))
local state = algorithm.decode(value or found[2] or nil)
local decided_directly = value and value ~= found[2]
algorithm.redate(params, state, raw)

local function numbers(text)
  local all = {}
  for number in string.gmatch(text, '%d+') do
    all[#all + 1] = tonumber(number)
  end
  return unpack(all)
end
local function written(...)
  local all = { ... }
  for i = 1, #all do
    all[i] = digits(all[i])
  end
  return table.concat(all, ':')
end
local last, id, grace_until, swept, begun, kept_until = 0, 0, 0, 0, 0, 0
local all_granted, all_returned, restored, calls, reported, dropped = 0, 0, 0, 0, 0, 0
if found[1] then
  last, id, grace_until, swept, begun, kept_until, all_granted, all_returned, restored, calls,
    reported, dropped = numbers(found[1])
  -- Nodes of an older build write no numbers of calls. Without them, holders seem to have seen more
  -- than the store, which can only raise the state.
  calls, reported, dropped = calls or 0, reported or 0, dropped or 0
end
-- The latest instant seen counts, unless the clock stepped back by more than a window.
local now = max(raw, last)
if last > raw + (windowed and params.window or max(bucket_window(params), LEAP_US_MIN)) then
  -- A re-dated window state says below how far ahead the key is. A direct decision may have
  -- re-dated it before, so the book must not choose a window of its own.
  now = raw
  grace_until, swept, begun = min(grace_until, now + grace), min(swept, now), min(begun, now)
  kept_until = 0
end
if windowed then
  now = max(now, state.index * params.window)
end
-- A bucket is read by the clock as it is, as direct decisions do, which may have re-dated it.
local state_now = windowed and now or raw

-- Selects the ledger: that of the window, or the one begun when the key was last unknown.
-- A lost ledger goes on under its name, so that its holders keep their units.
local rolled, reinstated = false, false
local function restart(named)
  redis.call('UNLINK', book)
  found[3], id, swept = false, named, now
  all_granted, all_returned, restored, calls, reported, dropped = 0, 0, 0, 0, 0, 0
end
if not found[1] then
  begun = now
end
-- A holder that knows a ledger which begins now has seen what the store lost.
local is_begun = found[1]
if fixed then
  local index = div_rem(now, params.window)
  is_begun = found[1] and id >= index
  if not is_begun then
    restart(index)
  end
  id = index
elseif not found[1] then
  restart(ledger == 0 and now or ledger)
end

-- Restored is 0 for a book that lost nothing, 1 for one with nothing but what holders said, 2 for
-- one with other charges too.
local function charged()
  restored = restored == 0 and 0 or 2
end
if decided_directly then
  charged()
end

-- Raises the state to what the request's summary says, or replaces it; returns whether it lacked
-- units. The summary has `uncredited` returns that are credited again: if a window has less than
-- the summary after that, it lacks charges too.
local function restore(replaces, uncredited)
  local at, first, second = request[17], request[18], request[19]
  local function merge(own, other)
    return replaces and other or max(own, other)
  end
  local function lacks(own, other)
    return not replaces and other > max(0, own - uncredited)
  end
  if not windowed then
    if not replaces and algorithm.idle_at_us(params, state) >= at then
      return false
    end
    local tat = state.full or state
    tat.us, tat.fraction, tat.count = at, 0, 0
    if state.full then
      state.latest_us = 0
    else
      bucket_date(params, tat, state_now)
    end
    return true
  end
  local index = div_rem(state_now, params.window)
  if fixed then
    local own, other = state.index == index and state.count or 0, at >= index and first or 0
    state.index, state.count = index, merge(own, other)
    return state.count ~= own or lacks(own, other)
  end
  local function counts(window, previous, current)
    if window >= index then
      return previous, current
    end
    return window + 1 == index and current or 0, 0
  end
  local previous, current = counts(state.index, state.previous, state.current)
  first, second = counts(at, first, second)
  state.index, state.previous, state.current = index, merge(previous, first), merge(current, second)
  return state.previous ~= previous or state.current ~= current
    or lacks(previous + current, first + second)
end

-- Restores a book with less than the holder has seen from the holder's summary. It contains all
-- that the holder was granted. Which returns of others it contains is unknown, so every holder has
-- to be reinstated.
local named = ledger == id
local g, q, since, _, last_call = 0, 0, state_now, 0, dropped
if found[3] then
  g, q, since, _, last_call = numbers(found[3])
end
-- Restoring a book continues its calls at the next multiple, beyond all calls that the store lost.
local LINEAGE, begins_lineage = 4294967296, false
-- Whether the store has lost a call that it answered to the holder, or that the process saw. Calls
-- of a lost book say nothing about this one.
local function proves_loss()
  local is_current = their_last_call >= calls - calls % LINEAGE
  return (is_current and their_last_call > last_call) or their_calls > calls
end
-- Drops the entries of all holders: which of their returns the state contains is unknown.
local function drop_holders()
  redis.call('UNLINK', book)
  found[3], dropped = false, calls
end
if ledger ~= 0 and (named or not fixed) then
  -- Lost returns alone are credited again by the holders' own totals. If the state lacks more, the
  -- store also lost what it had decided itself.
  local more_returned = their_granted == all_granted and their_returned > all_returned
  local later = their_granted > all_granted or (restored == 1 and more_returned)
  local is_new_loss = not is_begun or restored == 0 or proves_loss()
  -- A lost call after those that holders have reported so far.
  local is_unreported = their_calls > reported and their_calls < calls - calls % LINEAGE
  if not is_begun or not named or later or more_returned or is_unreported then
    local replaces = is_begun and named and restored == 1
    local raised = restore(replaces, named and max(0, their_returned - all_returned) or 0)
    if raised or (named and (later or not is_begun)) then
      local pure = replaces or (not is_begun and not value)
      restored = pure and 1 or 2
      if named then
        all_granted = max(all_granted, their_granted)
        all_returned = max(all_returned, their_returned)
      end
      drop_holders()
      rolled, begins_lineage = true, named and is_new_loss
      g, q, since, last_call = 0, 0, state_now, dropped
    end
  end
end

-- Merges the request with the holder's entry by maximum. If the entry has less than the holder
-- knows, the store lost writes: repairs them and starts a grace period.
-- Grants and returns have the time of the state. Otherwise a book whose clock stands still after a
-- step back would credit units that time has returned to a bucket.
if since > state_now then
  -- The clock stepped back, so the age is unknown.
  since = 0
end
if not named then
  known, returned, their_calls, their_last_call = 0, 0, 0, 0
end
do
  local is_outdated = proves_loss()
  if known > g and restored ~= 0 and not found[3] then
    -- The state that was restored contains its units, and perhaps its returns.
    g, q, reinstated = known, max(q, returned), true
  elseif known > g then
    -- More than the capacity, plus what is given back below, makes no difference.
    local most = (windowed and params.limit or params.capacity) + max(0, returned - q)
    algorithm.charge(params, state, state_now, fixed and known - g or min(known - g, most))
    all_granted = all_granted + known - g
    g, rolled, is_outdated = known, true, true
  end
  -- The summary also has what the store had decided itself, and perhaps returns of other holders.
  if is_outdated and restore(false, max(0, their_returned - all_returned)) then
    all_granted, all_returned = max(all_granted, their_granted), max(all_returned, their_returned)
    q, restored, reinstated, rolled = max(q, returned), 2, true, true
    drop_holders()
    begins_lineage = true
  end
end
if named and not fixed then
  -- When they were granted is forgotten, and so is what time has returned of them.
  q = max(q, request[20])
end
if returned > q then
  local receipt = { at_us = min(return_at, state_now), mark_us = 0, mark_fraction = 0 }
  algorithm.give_back(params, state, state_now, returned - q, receipt)
  all_returned = all_returned + returned - q
  q = returned
end
if rolled then
  grace_until = max(grace_until, now + grace)
end

local block = head and struct.unpack('>I7', head, 2) or 0
-- Sweeps dead holders. In a fixed window a living holder must be able to re-assert until the
-- window's end, so only entries that a newer holder of the same process replaced are removed.
if now - swept >= reclaim then
  local all, newest = redis.call('HGETALL', book), {}
  local function parts(holder)
    return string.sub(holder, 1, 16), (struct.unpack('>I6', holder, 17))
  end
  local function note(holder)
    local process, number = parts(holder)
    newest[process] = max(newest[process] or 0, number)
  end
  note(name)
  for i = 1, #all, 2 do
    if #all[i] > 1 then
      note(all[i])
    end
  end
  for i = 1, #all, 2 do
    if #all[i] > 1 and all[i] ~= name and tonumber(string.match(all[i + 1], ':(%d+)$')) <= now then
      local process, number = parts(all[i])
      if not fixed or number < newest[process] then
        redis.call('HDEL', book, all[i])
      end
    end
  end
  swept = now
end

-- Grants a share of what is left, smaller the more holders share it; but all that one request
-- needs, if so much is left.
local left = now < block and 0 or algorithm.decide(params, state, state_now, 0, false).remaining
local room, short = known + want - g, max(0, known + need - g)
if want > 0 and room > 0 and now >= grace_until then
  -- `m` and `s` are no holders; this one may not be in the book yet.
  local sharing = max(1, redis.call('HLEN', book) - (found[3] and 2 or 1))
  if short > left then
    room, short = room - short, 0
  end
  local units = max(0, min(room, left, max(floor(left / (2 * sharing)), short, 1)))
  if units > 0 then
    if g == known then
      since = state_now
    end
    algorithm.charge(params, state, state_now, units)
    g, left, all_granted = g + units, left - units, all_granted + units
    charged()
  end
end

local idle, head_ends, kept_ms = algorithm.idle_at_us(params, state), 0, nil
if head then
  head, head_ends, kept_ms = kept_head(KEYS[1], head, now)
  idle = max(idle, head_ends)
end
local ttl = max(idle - state_now, windowed and 2 * params.window or 0, grace_until - now) + reclaim
-- Never shorter than other holders were told; they may have longer leases.
kept_until = max(kept_until, now + ttl)
ttl = kept_until - now
local kept, left_ms = algorithm.encode(state), digits(math.ceil(ttl / 1000) + ttl_margin)
write(KEYS[1], (head or '') .. kept, left_ms, kept_ms)
calls = max(calls, their_calls) + 1
if begins_lineage then
  calls = math.ceil(calls / LINEAGE) * LINEAGE
end
if their_calls < calls - calls % LINEAGE then
  reported = max(reported, their_calls)
end
local meta = written(
  now, id, grace_until, swept, begun, kept_until, all_granted, all_returned, restored, calls,
  reported, dropped
)
local field = written(g, q, since, now, calls, now + reclaim)
redis.call('HSET', book, 'm', meta, 's', kept, name, field)
redis.call('PEXPIRE', book, left_ms)

local usable = max(0, lifetime - (state_now - since))
if fixed then
  usable = min(usable, params.window - now % params.window)
end
local shown = algorithm.decide(params, state, state_now, max(1, need), false)
return cmsgpack.pack({
  id, g, q, since, usable, max(0, grace_until - now), left, ttl, rolled and 1 or 0,
  now < block and max(block - now, shown.retry_after_us or 0) or shown.retry_after_us or -1,
  shown.reset_after_us, max(0, now - begun), reinstated and 1 or 0, all_granted, all_returned,
  windowed and state.index or algorithm.idle_at_us(params, state),
  fixed and state.count or state.previous or 0, state.current or 0, calls,
})
