-- Applies changes that are not subject to admission. Follows the mirrors and cells.lua.
--
-- A program is a flat array: for each change its key, its limit, its kind, its units or duration,
-- the receipt's instant, mark and fraction, the limit it was charged under, the cost for which the
-- row answers, and its penalty (0 for none).
--
-- Returns the instant, each value afterwards (of an expiry log only its head), the outcomes of
-- expiry logs, and the receipts of new debts.

local GIVE_BACK, OWE, BLOCK, UNBLOCK = 1, 2, 3, 4

local function apply(now, ttl_margin, limits, penalties, program)
  local values, outcomes, receipts = {}, {}, {}
  for i = 1, #program, 10 do
    local key, params, kind, amount = program[i], limits[program[i + 1]], program[i + 2], program[i + 3]
    local value = redis.call('GET', KEYS[key])
    local cell = cell_of(value, params.algorithm)
    local algorithm, before = params.algorithm, nil
    cell.params, cell.penalty_params = params, penalties[program[i + 9]]
    if kind == GIVE_BACK and amount > 0 then
      local receipt = {
        at_us = program[i + 4],
        mark_us = program[i + 5],
        mark_fraction = program[i + 6],
      }
      algorithm.give_back(limits[program[i + 7]], cell.state, now, amount, receipt)
    elseif kind == OWE and amount > 0 then
      local receipt = algorithm.charge(params, cell.state, now, amount)
      before = { receipt.at_us, receipt.mark_us, receipt.mark_fraction }
    elseif kind == BLOCK then
      cell.block = max(cell.block, add(now, amount))
    elseif kind == UNBLOCK then
      cell.block, cell.penalty = 0, nil
    end
    algorithm.redate(params, cell.state, now)
    -- A give-back to a missing key writes nothing.
    if value or before or kind == BLOCK then
      keep(KEYS[key], cell, now, ttl_margin)
    end
    local place = #values + 1
    receipts[place] = before and cmsgpack.pack(before) or false
    if is_expiry_log(algorithm) then
      values[place] = head_of(cell)
      outcomes[#outcomes + 1] = outcome_of(params, cell, now, program[i + 8], false)
    else
      values[place] = head_of(cell) .. algorithm.encode(cell.state)
    end
  end
  return { digits(now), values, outcomes, receipts }
end
