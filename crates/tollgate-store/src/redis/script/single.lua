-- Decides requests that have one charge each, by a limit whose whole state is a TAT and that punishes nobody: gcra and leaky bucket. Follows step.lua.
--
-- The same steps as in bucket.lua, with every call and every string spared: this is what most decisions cost Redis. Requests for different
-- keys do not concern each other, so they are decided key by key.
--
-- ARGV[3] is a list of ways to charge, of six numbers in seven bytes each: the longest backlog beside which the cost fits, whole microseconds plus one (zero
-- where it never fits) and fraction; what the cost adds, whole and fraction; the scale of fractions; and the count. ARGV[4] has the way of each key in a byte,
-- unless there is but one; ARGV[5] how many requests each key has, unless that is one for all.
--
-- Answers with the values that were read; the server's time, in seconds and microseconds; and where somebody was refused a list: the key, and how many
-- of its requests were admitted.

local MAX_US, HEAD = 9007199254740991, 127
local keys, call, byte, format, read = KEYS, redis.call, string.byte, string.format, struct.unpack
local given, spare, packed, ways, many = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now, seconds, micros = nil, '', ''
if given == '' then
  local time = call('TIME')
  seconds, micros = time[1], time[2]
  now = seconds * 1000000 + micros
else
  now = tonumber(given)
end
local values, n = call('MGET', unpack(keys)), #keys
local room, room_part, span, span_part, scale, count
local way, span_text, step, ends, refused

-- A value that is more than digits: the TAT, its fraction and the count of that; the end of a block, and the head to keep.
local function open(value)
  local block, head, at = 0, '', 1
  if byte(value) == HEAD then
    block, at = read('>I7', value, 2), 10 + byte(value, 9)
    head = block > 0 and string.sub(value, 1, 8) .. '\0' or ''
  end
  if at > #value then
    return 0, 0, 0, block, head
  elseif byte(value, at) >= 32 then
    return tonumber(string.sub(value, at)), 0, 0, block, head
  end
  local us, bytes = read('>I7', value, at), (#value - at - 6) / 2
  if bytes == 0 then
    return us, 0, 0, block, head
  end
  local fraction, of = read('>I' .. bytes .. 'I' .. bytes, value, at + 7)
  return us, fraction, of, block, head
end

local function write(key, tat, part, head)
  local own_step, text = tat - tat % STEP_US, nil
  if own_step ~= step then
    step = own_step
    local from = given == '' and 0 or now
    ends = format('%.0f', math.ceil((step - from + STEP_US) / 1000) + spare)
  end
  if part > 0 then
    local bytes, above = 1, 256
    while above <= count do
      bytes, above = bytes + 1, above * 256
    end
    text = struct.pack('>I7I' .. bytes .. 'I' .. bytes, tat, part, count)
  elseif tat >= 1000000 and tat < 2147483648000000 then
    -- Two short numbers take half the time of a long one.
    local us = tat % 1000000
    text = format('%d%06d', (tat - us) / 1000000, us)
  else
    text = format('%.0f', tat)
  end
  call('SET', key, head and head .. text or text, given == '' and 'PXAT' or 'PX', ends)
end

for i = 1, n do
  local own = ways == '' and 1 or byte(ways, i)
  if own ~= way then
    way, span_text = own, nil
    room, room_part, span, span_part, scale, count = read('>I7I7I7I7I7I7', packed, 42 * own - 41)
    room = room - 1
  end
  local value, tat, part = values[i], 0, 0
  local plain, blocked, head = false, false, nil
  if value then
    local first = byte(value)
    if first >= 48 and first <= 57 then
      tat, plain = value + 0, true
    else
      local of, block
      tat, part, of, block, head = open(value)
      blocked = now < block
      if part > 0 and of ~= count then
        tat, part = tat + 1, 0
      end
    end
  end
  local whole = tat - now
  if whole < 0 then
    whole, part = 0, 0
  end
  local wanted, admitted = many == '' and 1 or byte(many, i), 0
  while admitted < wanted and not blocked
    and (whole < room or (whole == room and part <= room_part)) do
    admitted, whole, part = admitted + 1, whole + span, part + span_part
    if part >= scale then
      whole, part = whole + 1, part - scale
    end
    if whole >= MAX_US - now then
      whole, part = MAX_US - now, 0
    end
  end
  if admitted < wanted then
    refused = refused or {}
    refused[#refused + 1] = i
    refused[#refused + 1] = admitted
  end
  if admitted > 0 then
    local new = now + whole
    if plain and part == 0 and given == '' and tat >= new - new % STEP_US then
      -- Its end stays, and a number is all that changes: half the work of writing the key anew.
      if new - tat == span then
        span_text = span_text or format('%.0f', span)
        call('INCRBY', keys[i], span_text)
      else
        call('INCRBY', keys[i], format('%.0f', new - tat))
      end
    else
      write(keys[i], new, part, head)
    end
  end
end
values[n + 1], values[n + 2], values[n + 3] = seconds, micros, refused
return values
