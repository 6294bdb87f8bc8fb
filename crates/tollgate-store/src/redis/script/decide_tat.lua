-- Decides a batch as decide.lua does, for limits without penalties whose state is one TAT: gcra and
-- leaky bucket. Follows params.lua.
--
-- The steps are those of bucket.lua, without a table or a call for each decision, at half the cost.
-- A backlog is `whole` microseconds and `part`, a fraction of the limit's scale.

local now, ttl_margin = instant(ARGV[1]), tonumber(ARGV[2])
local limits, program = limits_of(ARGV[3]), cmsgpack.unpack(ARGV[5])
local byte, call, format = string.byte, redis.call, string.format
-- By key: the TAT, its fraction, the count that the fraction belongs to, an operator's block. By
-- charge of the current request: the backlog, and whether the charge fits.
local tats, fractions, counts, blocks = {}, {}, {}, {}
local wholes, parts, own = {}, {}, {}
local verdicts, changed, dirty = {}, {}, {}

-- Computes the longest backlog that admits a cost, and the span that the cost adds. Mostly the cost
-- is that of the charge before.
local function prepare(params, cost)
  params.cost, params.possible = cost, cost <= params.capacity
  if params.possible then
    params.room, params.room_part = bucket_span(params, params.capacity - cost)
  end
  params.span, params.span_part = bucket_span(params, cost)
end

local function open(key)
  local value = values[key]
  if value and byte(value) == HEAD then
    local head, rest = split(value)
    local block = struct.unpack('>I7', head, 2)
    blocks[key], value = block > 0 and block or nil, rest
  end
  if value and byte(value) < 32 then
    local tat = tat_unpack(value, 1)
    fractions[key], counts[key] = tat.fraction, tat.count
    return tat.us
  end
  fractions[key] = 0
  return value and tonumber(value) or 0
end

local at, last, request = 1, #program, 0
while at < last do
  local takes, admitted = program[at] == 1, true
  local from, n = at + 2, 0
  local to = from + program[at + 1] * 5 - 5
  for i = from, to, 5 do
    local key, params, cost = program[i], limits[program[i + 1]], program[i + 2]
    local tat = tats[key]
    if not tat then
      tat = open(key)
      tats[key] = tat
    end
    local part = fractions[key]
    if part > 0 and counts[key] ~= params.count then
      tat, part = tat + 1, 0
    end
    local whole = tat - now
    if whole < 0 then
      whole, part = 0, 0
    end
    if params.cost ~= cost then
      prepare(params, cost)
    end
    local fits = cost == 0
      or (params.possible and (whole < params.room or (whole == params.room and part <= params.room_part)))
    if program[i + 3] == 1 then
      if blocks[key] and now < blocks[key] then
        fits = false
      end
      admitted = admitted and fits
    end
    n = n + 1
    wholes[n], parts[n], own[n] = whole, part, fits
  end
  if takes and admitted then
    n = 0
    for i = from, to, 5 do
      local cost = program[i + 2]
      n = n + 1
      if own[n] and cost > 0 then
        local key, params = program[i], limits[program[i + 1]]
        if params.cost ~= cost then
          prepare(params, cost)
        end
        local whole, part = wholes[n] + params.span, parts[n] + params.span_part
        if part >= params.scale then
          whole, part = whole + 1, part - params.scale
        end
        local tat = now + min(whole, MAX_US)
        if tat >= MAX_US then
          tat, part = MAX_US, 0
        end
        tats[key], fractions[key], counts[key] = tat, part, part > 0 and params.count or 0
        if not dirty[key] then
          dirty[key] = true
          changed[#changed + 1] = key
        end
      end
    end
  end
  request = request + 1
  verdicts[request] = admitted and '1' or '0'
  at = to + 5
end

for i = 1, #changed do
  local key = changed[i]
  local tat, fraction, block = tats[key], fractions[key], blocks[key]
  local idle = fraction > 0 and tat + 1 or tat
  local value
  if fraction > 0 then
    value = tat_pack({ us = tat, fraction = fraction, count = counts[key] })
  elseif tat >= 1000000 and tat < 2147483648000000 then
    local us = tat % 1000000
    value = format('%d%06d', (tat - us) / 1000000, us)
  else
    value = digits(tat)
  end
  if block then
    value, idle = string.char(HEAD) .. struct.pack('>I7', block) .. '\0' .. value, max(idle, block)
  end
  call('SET', keys[key], value, 'PX', lasting(idle, now, ttl_margin))
end
return { digits(now), table.concat(verdicts), values, {} }
