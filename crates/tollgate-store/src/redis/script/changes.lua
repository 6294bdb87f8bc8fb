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
  local cells, values, outcomes, receipts = {}, {}, {}, {}
  -- A key with other data ends the script here, before it has written anything.
  for i = 1, #program, 10 do
    -- `MGET`, since a key of another type counts as missing, as in decisions.
    local value = redis.call('MGET', KEYS[program[i]])[1]
    local cell = cell_of(value, limits[program[i + 1]].algorithm)
    cells[program[i]], cell.is_stored = cell, value
  end
  for i = 1, #program, 10 do
    local key, params, kind, amount = program[i], limits[program[i + 1]], program[i + 2], program[i + 3]
    local cell = cells[key]
    local algorithm, before = params.algorithm, nil
    cell.params, cell.penalty_params = params, penalties[program[i + 9]]
    -- A reset has forgotten the charges before it. Instant zero has none before it. A slot is found
    -- again by its own end; one that stays taken would lock the key.
    local reset = cell.reset
    local is_counted = algorithm == concurrency or program[i + 4] > reset or reset == 0
      or now >= reset + RESET_US
    if kind == GIVE_BACK and amount > 0 and is_counted then
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
      cell.block, cell.penalty, cell.penalty_text = 0, nil, nil
    end
    algorithm.redate(params, cell.state, now)
    -- A give-back to a missing key writes nothing.
    cell.is_stored = cell.is_stored or before or kind == BLOCK
    if cell.is_stored then
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
