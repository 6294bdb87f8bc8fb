-- Decides whether a write keeps a value's head. Returns the head or an empty string; the instant
-- until which it matters: the end of an operator's block, the mark of a penalty, or an hour after a
-- reset; and the TTL that the key must keep, if any. Follows step.lua.
--
-- A block that is over counts again if the clock steps back. A limit without a penalty keeps that
-- of others: a reload removed it, or another node has it. Only a limit with the penalty knows for
-- how long it counts, so the key keeps its TTL.
--
-- decide_single.lua and decide_fast.lua have this text in their branch for keys with heads, since
-- Redis creates functions anew in every call.

local function kept_head(key, head, now, has_penalty)
  local block = struct.unpack('>I7', head, 2)
  local mark = tonumber(string.match(head, ':(%d+)@?%d*$', 10) or 0)
  local reset = tonumber(string.match(head, '@(%d+)$', 10) or -RESET_US)
  local ends = math.max(block, mark, reset + RESET_US)
  local has_text = string.byte(head, 10) ~= RESET_SIGN
  local kept_ms = mark > 0 and not has_penalty and redis.call('PTTL', key)
  return (block > 0 or has_text or now < ends) and head or '', math.min(ends, MAX_US), kept_ms
end
