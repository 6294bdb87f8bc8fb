-- The mirror of penalty/mod.rs. Value: `violations:blocks:mark`, with `!` in front if the mark is
-- the end of a block. `block`, `max` and the factor times 1,000 are at most 2^53 - 1.

local penalty = {}

function penalty.params(after, block, factor_milli, longest)
  return { after = after, block = block, factor_milli = factor_milli, longest = longest }
end

-- min(block * factor^blocks, max), each step rounded up to a microsecond.
local function penalty_block_for_us(params, blocks)
  local block = params.block
  if params.factor_milli > 1000 then
    for _ = 1, blocks do
      if block >= params.longest then
        break
      end
      block = muldiv_ceil(block, params.factor_milli, 1000)
    end
  end
  return min(block, params.longest)
end

-- The end of the current block, if the key is blocked.
function penalty.blocked_until_us(_, state, now)
  return state.blocked and now < state.mark_us and state.mark_us or nil
end

-- The instant from which violations and blocks are forgotten. Beyond 2^53 it is rounded, but no
-- clock reaches that.
function penalty.idle_at_us(params, state)
  if state.violations == 0 and state.blocks == 0 then
    return 0
  end
  return state.mark_us + params.longest
end

-- Counts a refusal outside a block. Returns the end of the block if it starts one.
function penalty.count(params, state, now)
  if now >= penalty.idle_at_us(params, state) then
    state.violations, state.blocks, state.mark_us = 0, 0, 0
  end
  state.violations = state.violations + 1
  state.mark_us = max(state.mark_us, now)
  state.blocked = false
  if state.violations < params.after then
    return nil
  end
  local ends = add(now, penalty_block_for_us(params, state.blocks))
  state.violations, state.mark_us, state.blocked = 0, ends, true
  state.blocks = min(state.blocks + 1, 4294967295)
  return ends
end

function penalty.encode(state)
  local mark = state.blocked and '!' or ''
  return mark .. digits(state.violations) .. ':' .. digits(state.blocks) .. ':' .. digits(state.mark_us)
end

function penalty.decode(value)
  local mark, violations, blocks, mark_us = string.match(value or '0:0:0', '^(!?)(%d+):(%d+):(%d+)$')
  return {
    violations = tonumber(violations),
    blocks = tonumber(blocks),
    mark_us = tonumber(mark_us),
    blocked = mark == '!',
  }
end
