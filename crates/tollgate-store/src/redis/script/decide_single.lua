-- Decides requests with one charge each, for limits without penalties whose state is one TAT (gcra
-- and leaky bucket) or a count of windows (fixed and sliding window). Follows step.lua and the part
-- that reads the keys; with windows also muldiv.lua.
--
-- The steps are those of bucket.lua, fixed_window.lua and sliding_window.lua, without calls and
-- tables: this is what most decisions cost Redis. Keys are independent, so requests are decided key
-- by key. decide_fast.lua takes 1.3 to 1.5 times as long for the same requests.
--
-- ARGV[3] lists kinds of charges, eight numbers of seven bytes each. For a TAT: the longest backlog
-- that admits the cost, in whole microseconds plus one (zero if it never fits) and fraction; the
-- span that the cost adds, whole and fraction; the scale of fractions, and the count; the time a
-- full bucket takes to drain, and the period. For windows: the largest use that admits the cost,
-- plus one; the window; the cost; whether the previous window counts; and zeros. ARGV[4] has the
-- kind of each key in a byte, or is empty if there is one kind; ARGV[5] the number of requests of
-- each key, or is empty if each has one.
--
-- A key with other data admits all its requests and stays as it is: the caller, which cannot read
-- it either, lets the failure policy answer.
--
-- Returns the values that were read; the server's time, in seconds and microseconds; and for keys
-- with refusals a list: the key, and how many of its requests were admitted.
--
-- It has no function outside of rare branches, since Redis would create each anew in every call.

local MAX_US, LEAP_US_MIN, HEAD = 9007199254740991, 1000000, 127
local call, byte, format, pack, unpack = redis.call, string.byte, string.format, struct.pack, struct.unpack
local given, ttl_margin, packed = ARGV[1], ARGV[2], ARGV[3]
local kinds, many = ARGV[4] ~= '' and ARGV[4], ARGV[5] ~= '' and ARGV[5]
local now, seconds, micros, by_server = nil, '', '', given == ''
if by_server then
  local time = call('TIME')
  seconds, micros = time[1], time[2]
  now = seconds * 1000000 + micros
else
  now = tonumber(given)
end
-- `SET` takes the end of a key as an instant, or from the caller's instant on.
local from, ends_as = by_server and 0 or now, by_server and 'PXAT' or 'PX'
local whole_max = MAX_US - now
local room, room_part, span, span_part, scale, count, full, period
local has_windows, window, cost, clock, elapsed
local kind, step, ends, refused

for i = 1, #keys do
  local own = kinds and byte(kinds, i) or 1
  if own ~= kind then
    kind = own
    room, room_part, span, span_part, scale, count, full, period =
      unpack('>I7I7I7I7I7I7I7I7', packed, 56 * own - 55)
    room, has_windows = room - 1, scale == 0
    if has_windows then
      window, cost = room_part, span
      elapsed = now % window
      clock = (now - elapsed) / window
    end
  end
  local wanted, admitted = many and byte(many, i) or 1, 0
  -- Whether the key's TTL may stay.
  local keeps = by_server
  local tries, value, block, head = wanted, values[i], 0, nil
  local first = value and byte(value)
  if first == HEAD and #value > 8 then
    block = unpack('>I7', value, 2)
    local rest = 10 + byte(value, 9)
    head, value, keeps = string.sub(value, 1, rest - 1), string.sub(value, rest), false
    first = byte(value)
    tries = now < block and 0 or wanted
  end
  -- The new value, and the instant from which it does not matter; without an instant, the TTL
  -- stays.
  local text, idle
  if has_windows then
    local index, lasting, previous, current = 0, 0, 0, 0
    if first and #value ~= 20 and #value ~= 26 then
      tries, wanted = 0, 0
    elseif first then
      index, lasting, previous, current =
        unpack(#value == 26 and '>I6I6I7I7' or '>I6I6I4I4', value)
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
    elseif weight > 0 then
      local rest = weight % window
      weight = (weight - rest) / window + (rest > 0 and 1 or 0)
    end
    keeps = keeps and lasting == window and current > 0 and not late
    while admitted < tries and weight + current <= room do
      admitted, current = admitted + 1, current + cost
    end
    if admitted > 0 or late then
      local long = previous >= 4294967296 or current >= 4294967296
      local until_idle = by_server and current > 0 and window or 0
      text = pack(long and '>I6I6I7I7' or '>I6I6I4I4', here, until_idle, previous, current)
      if not keeps then
        idle = (here + (current > 0 and 1 + span_part or previous > 0 and 1 or 0)) * window
      end
    end
  else
    local tat, part, ahead, redated = 0, 0, period, false
    if first and first < 32 then
      local at = #value % 2 == 0 and 8 or 1
      local bytes = (#value - at - 6) / 2
      keeps = false
      if bytes < 0 or bytes > 4 then
        tries, wanted, bytes = 0, 0, 0
      else
        tat = unpack('>I7', value, at)
        ahead = at == 8 and unpack('>I7', value) or ahead
      end
      if bytes > 0 then
        local of
        part, of = unpack('>I' .. bytes .. 'I' .. bytes, value, at + 7)
        if of ~= count then
          tat, part = tat + 1, 0
        end
      end
    elseif first then
      tat = first > 47 and first < 58 and tonumber(value)
      if not tat then
        tat, tries, wanted = 0, 0, 0
      end
    else
      keeps = false
    end
    local whole = tat - now
    if whole < 0 then
      whole, part = 0, 0
    elseif whole > full and whole > LEAP_US_MIN and count > 0
      and whole + (part > 0 and 1 or 0) - ahead > math.max(full, LEAP_US_MIN) then
      -- A leaping clock dated its charge.
      whole, part, keeps, redated = ahead, 0, false, true
    end
    while admitted < tries and (whole < room or (whole == room and part <= room_part)) do
      admitted, whole, part = admitted + 1, whole + span, part + span_part
      if part >= scale then
        whole, part = whole + 1, part - scale
      end
      if whole >= whole_max then
        whole, part = whole_max, 0
      end
    end
    if admitted > 0 or redated then
      local new = now + whole
      ahead = admitted > 0 and full or ahead
      if keeps and part == 0 and ahead == period and tat >= new - new % STEP_US then
        -- The TTL stays and only the number changes: a third of the work of SET.
        call('INCRBY', keys[i], format('%d', new - tat))
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
          text = format('%d%06d', (new - us) / 1000000, us)
        else
          text = format('%.0f', new)
        end
        if ahead ~= period then
          text = pack('>I7', ahead) .. (part > 0 and text or pack('>I7', new))
        end
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
    local kept_ms
    if head then
      -- kept_head.lua
      local kept_until
      head, kept_until, kept_ms = kept_head(keys[i], head, now)
      text, idle = head .. text, math.max(idle, kept_until)
    end
    local own_step = idle - idle % STEP_US
    if own_step ~= step then
      step = own_step
      local left = step - from + STEP_US
      ends = format('%.0f', math.ceil((left > 0 and left or 0) / 1000) + ttl_margin)
    end
    call('SET', keys[i], text, ends_as, ends)
    if kept_ms and kept_ms > call('PTTL', keys[i]) then
      call('SET', keys[i], text, 'PX', kept_ms)
    end
  end
end
return { values, seconds, micros, refused }
