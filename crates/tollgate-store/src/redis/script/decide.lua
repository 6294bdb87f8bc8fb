-- Decides a batch of requests in order. Follows the mirrors and cells.lua.
--
-- ARGV[5] is a flat array: for each request whether it takes (1) and its number of charges; for
-- each charge its key, its limit, its cost, its mode, and its penalty (0 for none). A mode is 0 for
-- shadow, 1 for enforced, `units + 2` for an enforced debt, `-1 - units` for one that is not, 2^33
-- for replaced, -2^33 for a candidate, -2^34 for a candidate that is not enforced.
--
-- Returns the instant, a byte for each request ('1' admitted), the values that were read (of expiry
-- logs only their heads), and the outcomes of expiry logs in order. The caller has the same
-- algorithms and computes the rows: replies stay small, and Redis computes only what decides.

local now, ttl_margin = instant(ARGV[1]), tonumber(ARGV[2])
local limits, penalties = limits_of(ARGV[3]), penalties_of(ARGV[4])
local program = cmsgpack.unpack(ARGV[5])
local REPLACED, CANDIDATE, SHADOW_CANDIDATE = 8589934592, -8589934592, -17179869184
local cells, changed = {}, {}
local verdicts, outcomes = {}, {}

-- A key with other data has no cell. Its charges neither count nor decide, and the caller gets the
-- data.
local function cell_at(key, params)
  local cell = cells[key]
  if cell == nil then
    local read, found = pcall(cell_of, values[key], params.algorithm)
    cell = read and found
    cells[key] = cell
    if cell and is_expiry_log(params.algorithm) then
      values[key] = split(values[key]) or false
    end
  end
  return cell
end

local function change(key, cell, params)
  cell.params = params
  changed[key] = cell
end

local at, last = 1, #program
while at < last do
  local takes, from, admitted, candidates_admit = program[at] == 1, at + 2, true, true
  local to = from + program[at + 1] * 5 - 5
  local own = {}
  for i = from, to, 5 do
    local key, params, cost = program[i], limits[program[i + 1]], program[i + 2]
    local cell = cell_at(key, params)
    if cell then
      if params.algorithm.redate(params, cell.state, now) then
        change(key, cell, params)
      end
      cell.penalty_params = penalties[program[i + 4]] or cell.penalty_params
      local mode = program[i + 3]
      local enforced = mode >= 1
      local blocked = enforced and blocked_until(cell, penalties[program[i + 4]], now)
      own[i] = not blocked and params.algorithm.admits(params, cell.state, now, cost)
      if enforced and not own[i] then
        admitted = false
      end
      if not own[i] and (mode == CANDIDATE or enforced and (mode ~= REPLACED or blocked)) then
        candidates_admit = false
      end
    end
  end
  for i = from, to, 5 do
    local key, params, cost = program[i], limits[program[i + 1]], program[i + 2]
    local cell = cells[key]
    if cell then
      local punished, mode = penalties[program[i + 4]], program[i + 3]
      local is_candidate = mode == CANDIDATE or mode == SHADOW_CANDIDATE
      local owed = takes and not is_candidate and mode ~= REPLACED
        and (mode > 1 and mode - 2 or mode < 0 and -1 - mode)
      local charged = own[i] and admitted
      if is_candidate then
        charged = own[i] and candidates_admit
      end
      if owed and owed > 0 then
        params.algorithm.charge(params, cell.state, now, owed)
        change(key, cell, params)
      end
      if is_expiry_log(params.algorithm) and owed then
        outcomes[#outcomes + 1] = outcome_of(params, cell, now, cost, false, own[i])
      elseif is_expiry_log(params.algorithm) then
        outcomes[#outcomes + 1] = outcome_of(params, cell, now, cost, takes and charged)
      end
      if takes and not owed and charged and cost > 0 then
        local receipt = params.algorithm.charge(params, cell.state, now, cost)
        if is_expiry_log(params.algorithm) then
          outcomes[#outcomes + 1] = cmsgpack.pack({ receipt.at_us, receipt.mark_us })
        end
        change(key, cell, params)
      elseif takes and not own[i] and punished and mode >= 1
        and not blocked_until(cell, punished, now) then
        cell.penalty = cell.penalty or penalty.decode(nil)
        penalty.count(punished, cell.penalty, now)
        change(key, cell, params)
      end
    end
  end
  verdicts[#verdicts + 1] = admitted and '1' or '0'
  at = to + 5
end

for key, cell in pairs(changed) do
  keep(keys[key], cell, now, ttl_margin)
end
return { digits(now), table.concat(verdicts), values, outcomes }
