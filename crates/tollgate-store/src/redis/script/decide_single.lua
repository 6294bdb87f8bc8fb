-- Decides requests with one charge each, for limits without penalties whose state is one TAT (gcra
-- and leaky bucket) or a count of windows (fixed and sliding window). Follows step.lua and the part
-- that reads the keys; with windows also muldiv.lua.
--
-- The steps are those of bucket.lua, fixed_window.lua and sliding_window.lua, without calls and
-- tables: this is what most decisions cost Redis. Keys are independent, so requests are decided key
-- by key.
--
-- ARGV[3] lists kinds of charges, eight numbers of seven bytes each. For a TAT: the longest backlog
-- that admits the cost, in whole microseconds plus one (zero if it never fits) and fraction; the
-- span that the cost adds, whole and fraction; the scale of fractions, and the count; the time a
-- full bucket takes to drain, and the period. For windows: the largest use that admits the cost,
-- plus one; the window; the cost; whether the previous window counts; and zeros. ARGV[4] has the
-- kind of each key in a byte, or is empty if there is one kind; ARGV[5] the number of requests of
-- each key, or is empty if each has one.
--
-- Returns the values that were read; the server's time, in seconds and microseconds; and for keys
-- with refusals a list: the key, and how many of its requests were admitted.
--
-- It has no function of its own, since Redis would create each anew in every call.

local MAX_US, LEAP_US_MIN, HEAD = 9007199254740991, 1000000, 127
local call, byte, pack, unpack = redis.call, string.byte, struct.pack, struct.unpack
local given, ttl_margin, packed, kinds, many = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now, seconds, micros = nil, '', ''
if given == '' then
  local time = call('TIME')
  seconds, micros = time[1], time[2]
  now = seconds * 1000000 + micros
else
  now = tonumber(given)
end
-- `SET` takes the end of a key as an instant, or from the caller's instant on.
local from, ends_as = given == '' and 0 or now, given == '' and 'PXAT' or 'PX'
local room, room_part, span, span_part, scale, count, full, period
local window, cost, clock, elapsed
local kind, span_text, step, ends, refused

for i = 1, #keys do
  local own = kinds == '' and 1 or byte(kinds, i)
  if own ~= kind then
    kind, span_text = own, nil
    room, room_part, span, span_part, scale, count, full, period =
      unpack('>I7I7I7I7I7I7I7I7', packed, 56 * own - 55)
    room = room - 1
    if scale == 0 then
      window, cost = room_part, span
      elapsed = now % window
      clock = (now - elapsed) / window
    end
  end
  local value, at, block, head = values[i], 1, 0, nil
  local first = value and byte(value)
  if first == HEAD then
    block, at = unpack('>I7', value, 2), 10 + byte(value, 9)
    -- A block that is over counts again if the clock steps back. A penalty is dropped: the limit
    -- has none any more.
    head = block > 0 and string.sub(value, 1, 8) .. '\0' or nil
    first = byte(value, at)
  end
  local wanted, admitted = many == '' and 1 or byte(many, i), 0
  -- The new value, and the instant from which it does not matter; without an instant, the TTL
  -- stays.
  local text, idle
  if scale == 0 then
    local index, lasting, previous, current = 0, 0, 0, 0
    if first then
      index, lasting, previous, current =
        unpack(#value - at == 25 and '>I6I6I7I7' or '>I6I6I4I4', value, at)
    end
    local late = index > clock + 1
    local here, left = clock, window - elapsed
    if index > clock then
      here, left = clock + 1, window
    elseif index < clock then
      previous, current, lasting = span_part == 1 and index + 1 == clock and current or 0, 0, 0
    end
    local weight = previous * left
    if weight > MAX_US then
      weight = muldiv_ceil(previous, left, window)
    else
      local rest = weight % window
      weight = (weight - rest) / window + (rest > 0 and 1 or 0)
    end
    local stays = lasting == window and current > 0 and given == '' and not head and not late
    while admitted < wanted and now >= block and weight + current <= room do
      admitted, current = admitted + 1, current + cost
    end
    if admitted > 0 or late then
      local long = previous >= 4294967296 or current >= 4294967296
      local until_idle = given == '' and current > 0 and window or 0
      text = pack(long and '>I6I6I7I7' or '>I6I6I4I4', here, until_idle, previous, current)
      if not stays then
        idle = (here + (current > 0 and 1 + span_part or previous > 0 and 1 or 0)) * window
        if idle < block then
          idle = block
        end
      end
    end
  else
    local tat, part, plain, ahead, redated = 0, 0, false, period, false
    if first and first < 32 then
      if (#value - at) % 2 == 1 then
        ahead, at = unpack('>I7', value, at), at + 7
      end
      tat = unpack('>I7', value, at)
      local bytes = (#value - at - 6) / 2
      if bytes > 0 then
        local of
        part, of = unpack('>I' .. bytes .. 'I' .. bytes, value, at + 7)
        if of ~= count then
          tat, part = tat + 1, 0
        end
      end
    elseif first and at == 1 then
      tat, plain = value + 0, true
    elseif first then
      tat = tonumber(string.sub(value, at))
    end
    local whole = tat - now
    if whole < 0 then
      whole, part = 0, 0
    elseif whole > full and whole > LEAP_US_MIN and count > 0
      and whole + (part > 0 and 1 or 0) - ahead > math.max(full, LEAP_US_MIN) then
      -- A leaping clock dated its charge.
      whole, part, plain, redated = ahead, 0, false, true
    end
    while admitted < wanted and now >= block
      and (whole < room or (whole == room and part <= room_part)) do
      admitted, whole, part = admitted + 1, whole + span, part + span_part
      if part >= scale then
        whole, part = whole + 1, part - scale
      end
      if whole >= MAX_US - now then
        whole, part = MAX_US - now, 0
      end
    end
    local new = now + whole
    if admitted > 0 then
      ahead = full
    end
    if admitted == 0 and not redated then
      -- Nothing changes.
    elseif plain and part == 0 and ahead == period and given == '' and tat >= new - new % STEP_US then
      -- The TTL stays and only the number changes: a third of the work of SET.
      if new - tat == span then
        span_text = span_text or string.format('%.0f', span)
        call('INCRBY', keys[i], span_text)
      else
        call('INCRBY', keys[i], string.format('%.0f', new - tat))
      end
    else
      idle = new
      if part > 0 then
        local bytes, above = 1, 256
        while above <= count do
          bytes, above = bytes + 1, above * 256
        end
        text = pack('>I7I' .. bytes .. 'I' .. bytes, new, part, count)
      elseif new >= 1000000 and new < 2147483648000000 then
        -- Formatting two short numbers takes half the time of a long one.
        local us = new % 1000000
        text = string.format('%d%06d', (new - us) / 1000000, us)
      else
        text = string.format('%.0f', new)
      end
      if ahead ~= period then
        text = pack('>I7', ahead) .. (part > 0 and text or pack('>I7', new))
      end
    end
  end
  if admitted < wanted then
    refused = refused or {}
    refused[#refused + 1] = i
    refused[#refused + 1] = admitted
  end
  if text and not idle then
    call('SET', keys[i], text, 'KEEPTTL')
  elseif text then
    local own_step = idle - idle % STEP_US
    if own_step ~= step then
      step = own_step
      local left = step - from + STEP_US
      ends = string.format('%.0f', math.ceil((left > 0 and left or 0) / 1000) + ttl_margin)
    end
    call('SET', keys[i], head and head .. text or text, ends_as, ends)
  end
end
return { values, seconds, micros, refused }
