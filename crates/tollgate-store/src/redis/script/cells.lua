-- What both scripts share: the cells of one call, read together, written together.
--
-- KEYS are distinct. ARGV[1] is the caller's instant, or empty for the server's; ARGV[2] how long a key outlives its use, in
-- milliseconds; ARGV[3] the numbers in use, ARGV[4] the penalties, both flat arrays in MessagePack.
--
-- A cell's value is its algorithm's own, unless somebody was refused or blocked: then a head stands in front of it, which begins with byte
-- 127, as no algorithm's value does: the end of an operator's block in seven bytes, the penalty's length and text.

local ALGORITHMS = {
  fixed_window, sliding_window, sliding_log, token_bucket, leaky_bucket, gcra, concurrency,
}
local HEAD = 127

-- Server time is read once: within a script it would differ from call to call.
local function instant(given)
  if given ~= '' then
    return tonumber(given)
  end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- Algorithms by number, each with its parameters: for windows and slots a limit and a length of time, for buckets what bucket_params
-- makes, with the fraction already in lowest terms.
local function numbers_of(packed)
  local flat, all = cmsgpack.unpack(packed), {}
  for i = 1, #flat, 6 do
    local a, b = flat[i + 1], flat[i + 2]
    all[#all + 1] = {
      algorithm = ALGORITHMS[flat[i]],
      limit = a,
      window = b,
      ttl = b,
      interval = a,
      scale = b,
      count = flat[i + 3],
      capacity = flat[i + 4],
      burst = flat[i + 5],
    }
  end
  return all
end

local function penalties_of(packed)
  local flat, all = cmsgpack.unpack(packed), {}
  for i = 1, #flat, 4 do
    all[#all + 1] = penalty.params(flat[i], flat[i + 1], flat[i + 2], flat[i + 3])
  end
  return all
end

-- Splits a value into its head, as it is, and the algorithm's part.
local function split(value)
  if value and string.byte(value) == HEAD then
    local at = 9 + string.byte(value, 9)
    local state = string.sub(value, at + 1)
    return string.sub(value, 1, at), state ~= '' and state or nil
  end
  return nil, value or nil
end

local function cell_of(value, algorithm)
  local head, state = split(value)
  local cell = { algorithm = algorithm, state = algorithm.decode(state), block = 0 }
  if head then
    cell.block = struct.unpack('>I7', head, 2)
    if #head > 9 then
      cell.penalty = penalty.decode(string.sub(head, 10))
    end
  end
  return cell
end

local function head_of(cell)
  if not cell.penalty and cell.block == 0 then
    return ''
  end
  local text = cell.penalty and penalty.encode(cell.penalty) or ''
  return string.char(HEAD) .. struct.pack('>I7', cell.block) .. string.char(#text) .. text
end

-- A ledger is as long as what it holds, so its rows are worked out here and it stays here.
local function is_ledger(algorithm)
  return algorithm == sliding_log or algorithm == concurrency
end

local function outcome_of(params, cell, now, cost, take)
  local outcome = params.algorithm.decide(params, cell.state, now, cost, take)
  return cmsgpack.pack({
    outcome.admitted and 1 or 0,
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

-- Keeps a cell for as long as it makes a difference, and a little longer, since a clock may step back.
local function keep(key, cell, now, spare)
  local idle = max(cell.algorithm.idle_at_us(cell.numbers, cell.state), cell.block)
  if cell.penalty and cell.penalty_params then
    idle = max(idle, penalty.idle_at_us(cell.penalty_params, cell.penalty))
  else
    -- Its limit no longer punishes anyone.
    cell.penalty = nil
  end
  local left = math.ceil(max(0, idle - now) / 1000) + spare
  redis.call('SET', key, head_of(cell) .. cell.algorithm.encode(cell.state), 'PX', digits(left))
end
