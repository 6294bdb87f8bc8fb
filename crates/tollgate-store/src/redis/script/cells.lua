-- Cells: a state with its block, its penalty and its reset. Follows params.lua.

local function penalties_of(packed)
  local flat, all = cmsgpack.unpack(packed), {}
  for i = 1, #flat, 4 do
    all[#all + 1] = penalty.params(flat[i], flat[i + 1], flat[i + 2], flat[i + 3])
  end
  return all
end

local function cell_of(value, algorithm)
  local head, state = split(value)
  local cell = { algorithm = algorithm, state = algorithm.decode(state), block = 0, reset = -1 }
  if head then
    cell.block = struct.unpack('>I7', head, 2)
    local text, reset = string.match(head, '^([^@]*)@(%d+)$', 10)
    text, cell.reset = text or string.sub(head, 10), tonumber(reset or -1)
    if text ~= '' then
      -- A script without penalties keeps the text as it is.
      cell.penalty_text = string.match(text, '^!?%d+:%d+:%d+$') or error('no penalty')
      cell.penalty = penalty and penalty.decode(text)
    end
  end
  return cell
end

local function head_of(cell)
  local text = cell.penalty and penalty.encode(cell.penalty) or cell.penalty_text or ''
  if cell.reset >= 0 then
    text = text .. '@' .. digits(cell.reset)
  end
  if text == '' and cell.block == 0 then
    return ''
  end
  return string.char(HEAD) .. struct.pack('>I7', cell.block) .. string.char(#text) .. text
end

-- An expiry log may be long, so its rows are computed here and its state is not returned.
local function is_expiry_log(algorithm)
  return algorithm == sliding_log or algorithm == concurrency
end

-- `own`: whether the limit admitted before the debt was charged.
local function outcome_of(params, cell, now, cost, take, own)
  local outcome = params.algorithm.decide(params, cell.state, now, cost, take)
  return cmsgpack.pack({
    (own or outcome.admitted) and 1 or 0,
    outcome.remaining,
    outcome.retry_after_us or -1,
    outcome.reset_after_us,
    outcome.more_after_us or -1,
  })
end

-- The end of the block that an enforced limit sees, if there is one.
local function blocked_until(cell, params, now)
  local ends = now < cell.block and cell.block or nil
  if params and cell.penalty then
    local by_penalty = penalty.blocked_until_us(params, cell.penalty, now)
    ends = by_penalty and max(by_penalty, ends or 0) or ends
  end
  return ends
end

-- Writes a cell, with a TTL for as long as it matters.
local function keep(key, cell, now, ttl_margin)
  local head, idle = head_of(cell), cell.algorithm.idle_at_us(cell.params, cell.state)
  local ends, kept_ms
  if head ~= '' then
    head, ends, kept_ms = kept_head(key, head, now, cell.penalty_params)
    idle = max(idle, ends)
  end
  if cell.penalty and cell.penalty_params then
    idle = max(idle, penalty.idle_at_us(cell.penalty_params, cell.penalty))
  end
  local value = head .. cell.algorithm.encode(cell.state)
  write(key, value, lasting(idle, now, ttl_margin), kept_ms)
end
