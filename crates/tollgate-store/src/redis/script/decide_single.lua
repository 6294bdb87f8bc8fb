-- Decides requests with one charge each, for limits without penalties whose state is one TAT: gcra
-- and leaky bucket. Follows step.lua and the part that reads the keys.
--
-- The steps are those of bucket.lua, without calls and strings: this is what most decisions cost
-- Redis. Keys are independent, so requests are decided key by key.
--
-- ARGV[3] lists kinds of charges, six numbers of seven bytes each: the longest backlog that admits
-- the cost, in whole microseconds plus one (zero if it never fits) and fraction; the span that the
-- cost adds, whole and fraction; the scale of fractions; and the count. ARGV[4] has the kind of
-- each key in a byte, or is empty if there is one kind; ARGV[5] the number of requests of each key,
-- or is empty if each has one.
--
-- Returns the values that were read; the server's time, in seconds and microseconds; and for keys
-- with refusals a list: the key, and how many of its requests were admitted.
--
-- It has no function, since Redis would create each anew in every call.

local MAX_US, HEAD = 9007199254740991, 127
local call, byte = redis.call, string.byte
local given, ttl_margin, packed, kinds, many = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local now, seconds, micros = nil, '', ''
if given == '' then
  local time = call('TIME')
  seconds, micros = time[1], time[2]
  now = seconds * 1000000 + micros
else
  now = tonumber(given)
end
local room, room_part, span, span_part, scale, count
local kind, span_text, step, ends, refused

for i = 1, #keys do
  local own = kinds == '' and 1 or byte(kinds, i)
  if own ~= kind then
    kind, span_text = own, nil
    room, room_part, span, span_part, scale, count =
      struct.unpack('>I7I7I7I7I7I7', packed, 42 * own - 41)
    room = room - 1
  end
  local value, tat, part = values[i], 0, 0
  local plain, blocked, head = false, false, nil
  if value then
    local first = byte(value)
    if first >= 48 and first <= 57 then
      tat, plain = value + 0, true
    else
      local at = 1
      if first == HEAD then
        local block = struct.unpack('>I7', value, 2)
        blocked, at = now < block, 10 + byte(value, 9)
        -- A block that is over counts again if the clock steps back. A penalty is dropped: the
        -- limit has none any more.
        head = block > 0 and string.sub(value, 1, 8) .. '\0' or nil
        first = byte(value, at)
      end
      if first and first >= 32 then
        tat = tonumber(string.sub(value, at))
      elseif first then
        tat = struct.unpack('>I7', value, at)
        local bytes = (#value - at - 6) / 2
        if bytes > 0 then
          local of
          part, of = struct.unpack('>I' .. bytes .. 'I' .. bytes, value, at + 7)
          if of ~= count then
            tat, part = tat + 1, 0
          end
        end
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
  local new = now + whole
  local own_step = new - new % STEP_US
  if admitted == 0 then
    -- Nothing changes.
  elseif plain and part == 0 and given == '' and tat >= own_step then
    -- The TTL stays and only the number changes: half the work of SET.
    if new - tat == span then
      span_text = span_text or string.format('%.0f', span)
      call('INCRBY', keys[i], span_text)
    else
      call('INCRBY', keys[i], string.format('%.0f', new - tat))
    end
  else
    local text
    if own_step ~= step then
      step = own_step
      local from = given == '' and 0 or now
      ends = string.format('%.0f', math.ceil((step - from + STEP_US) / 1000) + ttl_margin)
    end
    if part > 0 then
      local bytes, above = 1, 256
      while above <= count do
        bytes, above = bytes + 1, above * 256
      end
      text = struct.pack('>I7I' .. bytes .. 'I' .. bytes, new, part, count)
    elseif new >= 1000000 and new < 2147483648000000 then
      -- Formatting two short numbers takes half the time of a long one.
      local us = new % 1000000
      text = string.format('%d%06d', (new - us) / 1000000, us)
    else
      text = string.format('%.0f', new)
    end
    if head then
      text = head .. text
    end
    call('SET', keys[i], text, given == '' and 'PXAT' or 'PX', ends)
  end
end
return { values, seconds, micros, refused }
