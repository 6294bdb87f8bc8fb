-- Decides a batch as decide.lua does, for limits without penalties whose state is one TAT (gcra and
-- leaky bucket) or a count of windows (fixed and sliding window), and costs above zero. Follows
-- step.lua and the part that reads the keys; with windows also muldiv.lua.
--
-- The steps are those of bucket.lua, fixed_window.lua and sliding_window.lua, without a table or a
-- call for each decision.
--
-- ARGV[3] lists kinds of charges as decide_single.lua has them; ARGV[4] a byte for each kind, one
-- if it is enforced. ARGV[5] has for each request two bytes, whether it takes (1) and its number of
-- charges, and for each charge its key and its kind in two bytes each.

local MAX_US, LEAP_US_MIN, HEAD = 9007199254740991, 1000000, 127
local call, byte, format, pack, unpack = redis.call, string.byte, string.format, struct.pack, struct.unpack
local given, ttl_margin, packed, modes, program = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now, by_server = nil, given == ''
if by_server then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
else
  now = tonumber(given)
end
local from, ends_as, step, ends = by_server and 0 or now, by_server and 'PXAT' or 'PX', nil, nil

-- By kind. For windows: the window in `room_parts`, the cost in `spans`, in `span_parts` whether
-- the previous window counts, and the clock's window with how much of it is left.
local rooms, room_parts, spans, span_parts, scales, counts, clocks, lefts = {}, {}, {}, {}, {}, {}, {}, {}
local fulls, periods = {}, {}
for kind = 1, #modes do
  local room, part, span, span_part, scale, count, full, period =
    unpack('>I7I7I7I7I7I7I7I7', packed, 56 * kind - 55)
  rooms[kind], room_parts[kind], spans[kind] = room - 1, part, span
  span_parts[kind], scales[kind], counts[kind] = span_part, scale, count
  fulls[kind], periods[kind] = full, period
  if scale == 0 then
    local elapsed = now % part
    clocks[kind], lefts[kind] = (now - elapsed) / part, part - elapsed
  end
end

-- By key: the TAT, its fraction and the count that it belongs to, or a window's index and its
-- counts; how far the TAT lies ahead, unless one period; the head and an operator's block in it;
-- and the TAT or the window until whose end the key lasts. `firsts` is false for a key with other
-- data, whose charges neither count nor decide.
local firsts, seconds, thirds, aheads, heads, blocks, lasts = {}, {}, {}, {}, {}, {}, {}
-- By charge of the current request: its key, its kind, and whether it fits.
local of_key, of_kind, own = {}, {}, {}
-- By key, the kind of a charge that changed its state; and the changed keys.
local verdicts, dirty, changed = {}, {}, {}

local at, last, request = 1, #program, 0
while at < last do
  local takes, charges = byte(program, at, at + 1)
  local admitted = true
  at = at + 2
  for n = 1, charges do
    local high, low, kind_high, kind = byte(program, at, at + 3)
    local key, fits = high * 256 + low, nil
    kind, at = kind_high * 256 + kind, at + 4
    local scale, first, second, third = scales[kind], firsts[key], seconds[key], thirds[key]
    if first == nil then
      local value, from_byte = values[key], 1
      local start = value and byte(value)
      if start == HEAD and #value > 8 then
        blocks[key], from_byte = unpack('>I7', value, 2), 10 + byte(value, 9)
        heads[key], start = string.sub(value, 1, from_byte - 1), byte(value, from_byte)
      end
      local size = value and #value - from_byte + 1
      first, second, third = 0, 0, 0
      if not start then
        -- The key was never seen.
      elseif scale == 0 and size ~= 20 and size ~= 26 then
        first = false
      elseif scale == 0 then
        local lasting
        first, lasting, second, third =
          unpack(size == 26 and '>I6I6I7I7' or '>I6I6I4I4', value, from_byte)
        if from_byte == 1 and third > 0 and first >= clocks[kind] then
          lasts[key] = lasting
        end
        -- A leaping clock dated it too far ahead.
        if first > clocks[kind] + 1 then
          first, lasts[key], dirty[key] = clocks[kind] + 1, nil, kind
          changed[#changed + 1] = key
        end
      elseif start < 32 then
        local before = size % 2 == 0 and 7 or 0
        local bytes = (size - before - 7) / 2
        first = bytes >= 0 and bytes <= 4 and unpack('>I7', value, from_byte + before)
        if first and before > 0 then
          aheads[key] = unpack('>I7', value, from_byte)
        end
        if first and bytes > 0 then
          second, third = unpack('>I' .. bytes .. 'I' .. bytes, value, from_byte + before + 7)
        end
      else
        first = start > 47 and start < 58
          and tonumber(from_byte == 1 and value or string.sub(value, from_byte)) or false
        lasts[key] = from_byte == 1 and first or nil
      end
      firsts[key], seconds[key], thirds[key] = first, second, third
    end
    if not first then
      fits = false
    elseif scale == 0 then
      local window, clock, left = room_parts[kind], clocks[kind], lefts[kind]
      if first > clock then
        left = window
      elseif first < clock then
        second, third = first + 1 == clock and span_parts[kind] == 1 and third or 0, 0
        firsts[key], seconds[key], thirds[key] = clock, second, third
      end
      local weight = second * left
      if weight > MAX_US then
        weight = muldiv_ceil(second, left, window)
      elseif weight > 0 then
        local rest = weight % window
        weight = (weight - rest) / window + (rest > 0 and 1 or 0)
      end
      fits = weight + third <= rooms[kind]
    else
      local whole, full = first - now, fulls[kind]
      if whole > full and whole > LEAP_US_MIN and counts[kind] > 0 then
        local ahead = aheads[key] or periods[kind]
        if whole + (second > 0 and 1 or 0) - ahead > math.max(full, LEAP_US_MIN) then
          -- A leaping clock dated its charge.
          whole, second, third = ahead, 0, 0
          firsts[key], seconds[key], thirds[key], lasts[key] = now + ahead, 0, 0, nil
          if not dirty[key] then
            dirty[key], changed[#changed + 1] = kind, key
          end
        end
      end
      if second > 0 and third ~= counts[kind] then
        whole, second = whole + 1, 0
      end
      if whole < 0 then
        whole, second = 0, 0
      end
      local room = rooms[kind]
      fits = whole < room or (whole == room and second <= room_parts[kind])
    end
    if first and byte(modes, kind) == 1 then
      local block = blocks[key]
      if block and now < block then
        fits = false
      end
      admitted = admitted and fits
    end
    of_key[n], of_kind[n], own[n] = key, kind, fits
  end
  if admitted and takes == 1 then
    for n = 1, charges do
      if own[n] then
        local key, kind = of_key[n], of_kind[n]
        local scale = scales[kind]
        if scale == 0 then
          thirds[key] = thirds[key] + spans[kind]
        else
          local whole, part = firsts[key] - now, seconds[key]
          if part > 0 and thirds[key] ~= counts[kind] then
            whole, part = whole + 1, 0
          end
          if whole < 0 then
            whole, part = 0, 0
          end
          whole, part = whole + spans[kind], part + span_parts[kind]
          if part >= scale then
            whole, part = whole + 1, part - scale
          end
          if whole >= MAX_US - now then
            whole, part = MAX_US - now, 0
          end
          firsts[key], seconds[key], thirds[key] = now + whole, part, part > 0 and counts[kind] or 0
          aheads[key] = fulls[kind] ~= periods[kind] and fulls[kind] or nil
        end
        if not dirty[key] then
          changed[#changed + 1] = key
        end
        dirty[key] = kind
      end
    end
  end
  request = request + 1
  verdicts[request] = admitted and '1' or '0'
end

for i = 1, #changed do
  local key = changed[i]
  local kind, first, second, third, head = dirty[key], firsts[key], seconds[key], thirds[key], heads[key]
  local lasting, value, idle = by_server and lasts[key], nil, nil
  if scales[kind] == 0 then
    local window = room_parts[kind]
    local long = second >= 4294967296 or third >= 4294967296
    local until_idle = by_server and third > 0 and window or 0
    value = pack(long and '>I6I6I7I7' or '>I6I6I4I4', first, until_idle, second, third)
    if lasting ~= window then
      local windows = third > 0 and 1 + span_parts[kind] or second > 0 and 1 or 0
      idle = (first + windows) * window
    end
  elseif second > 0 or aheads[key] then
    value, idle = aheads[key] and pack('>I7', aheads[key]) or '', first
    if second > 0 then
      local bytes, above = 1, 256
      while above <= third do
        bytes, above = bytes + 1, above * 256
      end
      value, idle = value .. pack('>I7I' .. bytes .. 'I' .. bytes, first, second, third), first + 1
    else
      value = value .. pack('>I7', first)
    end
  elseif lasting and lasting >= first - first % STEP_US then
    call('INCRBY', keys[key], format('%d', first - lasting))
  elseif first >= 1000000 and first < 2147483648000000 then
    local us = first % 1000000
    value, idle = format('%d%06d', (first - us) / 1000000, us), first
  else
    value, idle = format('%.0f', first), first
  end
  if value and not idle then
    call('SET', keys[key], value, 'KEEPTTL')
  elseif value then
    local kept_ms
    if head then
      -- kept_head.lua
      local kept_until
      head, kept_until, kept_ms = kept_head(keys[key], head, now)
      value, idle = head .. value, math.max(idle, kept_until)
    end
    local own_step = idle - idle % STEP_US
    if own_step ~= step then
      step = own_step
      local left = step - from + STEP_US
      ends = format('%.0f', math.ceil((left > 0 and left or 0) / 1000) + ttl_margin)
    end
    call('SET', keys[key], value, ends_as, ends)
    if kept_ms and kept_ms > call('PTTL', keys[key]) then
      call('SET', keys[key], value, 'PX', kept_ms)
    end
  end
end
return { format('%.0f', now), table.concat(verdicts), values, {} }
