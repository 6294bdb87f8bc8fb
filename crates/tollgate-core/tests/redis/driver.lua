-- Runs a whole trace on one key: nine arguments an operation, one row of text an operation. It
-- follows the mirror in question, which it knows as `mirror`. The state goes through the key
-- between any two operations.

local function text(n)
  return n and digits(n) or '-'
end

local function tat_text(tat)
  return text(tat.us) .. '+' .. text(tat.fraction) .. '/' .. text(tat.count)
end

local function state_text(state)
  if state.full then
    return text(state.latest_us) .. ' ' .. tat_text(state.full)
  elseif state.us then
    return tat_text(state) .. ' ' .. text(state.ahead)
  elseif state.previous then
    return text(state.index) .. ' ' .. text(state.previous) .. ' ' .. text(state.current)
  elseif state.start then
    return text(state.start) .. ' ' .. text(state.count)
  elseif state.index then
    return text(state.index) .. ' ' .. text(state.count)
  end
  local row = { text(state.latest), text(state.total) }
  for i = state.first, expiry_log_last(state) do
    local ends, units = expiry_log_entry(state, i)
    row[#row + 1] = text(ends) .. ':' .. text(units)
  end
  return table.concat(row, ' ')
end

local function outcome_text(outcome)
  return table.concat({
    tostring(outcome.admitted),
    text(outcome.limit),
    text(outcome.remaining),
    text(outcome.retry_after_us),
    text(outcome.reset_after_us),
    text(outcome.delay_us),
    text(outcome.more_after_us),
  }, ' ')
end

local function receipt_text(receipt)
  return text(receipt.at_us) .. ' ' .. text(receipt.mark_us) .. ' ' .. text(receipt.mark_fraction)
end

local receipts, rows = {}, {}
redis.call('DEL', KEYS[1])
for i = 1, #ARGV, 9 do
  local op, now, amount = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local params = mirror.params(
    tonumber(ARGV[i + 4]),
    tonumber(ARGV[i + 5]),
    tonumber(ARGV[i + 6]),
    tonumber(ARGV[i + 7]),
    tonumber(ARGV[i + 8])
  )
  local state = mirror.decode(redis.call('GET', KEYS[1]) or nil)
  local outcome, receipt = nil, nil
  if op == 'check' or op == 'peek' then
    local admits = mirror.admits(params, state, now, amount)
    outcome = mirror.decide(params, state, now, amount, op == 'check')
    assert(admits == outcome.admitted, 'admits and decide disagree')
  end
  if op == 'charge' or (op == 'check' and outcome.admitted) then
    receipt = mirror.charge(params, state, now, amount)
    receipts[#receipts + 1] = receipt
  end
  if op == 'redate' then
    outcome = tostring(mirror.redate(params, state, now))
  elseif op == 'give' then
    mirror.give_back(params, state, now, amount, receipts[tonumber(ARGV[i + 3])])
  end
  redis.call('SET', KEYS[1], mirror.encode(state))
  rows[#rows + 1] = table.concat({
    type(outcome) == 'table' and outcome_text(outcome) or outcome or '-',
    receipt and receipt_text(receipt) or '-',
    state_text(mirror.decode(redis.call('GET', KEYS[1]))),
    text(min(mirror.idle_at_us(params, state), MAX_US)),
  }, ' | ')
end
return rows
