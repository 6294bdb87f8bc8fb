-- The mirror of muldiv.rs: exact whole numbers in a language whose numbers are doubles.
--
-- A double holds every whole number below 2^53. Rounding is monotone: if a sum or product comes out
-- below 2^53, it is exact; otherwise it was at least 2^53. So one comparison distinguishes the two.
--
-- `a % b` is `a - floor(a / b) * b`, exact here too. The quotient could only be rounded up to the
-- next whole number v from a distance of at least 1 / b, but the distance it can cross is less than
-- v * 2^-53, and b * v <= a + b. At the distance 1 / b, b * v is a + 1 <= 2^53, too little; further
-- below v it falls short by more.

local MAX_US = 9007199254740991 -- 2^53 - 1: the last instant, and where counters and durations saturate.
local LEAP_US_MIN = 1000000 -- A clock that steps back by less is waited out.
local floor, min, max = math.floor, math.min, math.max

-- A whole number as text with all its digits; `tostring` would keep only fourteen.
local function digits(n)
  return string.format('%.0f', n)
end

-- a + b, saturating.
local function add(a, b)
  return min(a + b, MAX_US)
end

-- floor(a / b) and the rest.
local function div_rem(a, b)
  local rest = a % b
  return (a - rest) / b, rest
end

-- floor(a * b / m) and the rest for b < m <= 2^45, seven bits of a at a time. The carried rest and
-- b are at most m - 1 and a digit is at most 127, so a step handles at most 128 (m - 1) + 127 (m -
-- 1) = 255 (m - 1) < 2^8 * 2^45 = 2^53; eight bits would reach 511 (m - 1), past 2^53. The quotient
-- stays below a, since b < m.
local function muldiv_by_digits(a, b, m)
  local place, quotient, rest = 1, 0, 0
  while place * 128 <= a do
    place = place * 128
  end
  while place >= 1 do
    local digit = floor(a / place)
    a = a - digit * place
    local whole, left = div_rem(rest * 128 + digit * b, m)
    quotient, rest = quotient * 128 + whole, left
    place = place / 128
  end
  return quotient, rest
end

-- muldiv for b < m < 2^53, where even twice the rest does not fit: one bit at a time, and every sum
-- is first compared with the difference to m. Only counters deep in debt are so large.
local function muldiv_by_bits(a, b, m)
  local bit, quotient, rest = 1, 0, 0
  local function carry(more)
    if rest >= m - more then
      quotient, rest = quotient + 1, rest - (m - more)
    else
      rest = rest + more
    end
  end
  while bit * 2 <= a do
    bit = bit * 2
  end
  while bit >= 1 do
    quotient = quotient * 2
    carry(rest)
    if a >= bit then
      a = a - bit
      carry(b)
    end
    bit = bit / 2
  end
  return quotient, rest
end

-- floor(a * b / m), saturating, and the rest, for whole a, b, m < 2^53 and m > 0.
local function muldiv(a, b, m)
  local product = a * b
  if product <= MAX_US then
    return div_rem(product, m)
  end
  if a > b then
    a, b = b, a
  end
  local whole, part = div_rem(b, m)
  local by = m <= 35184372088832 and muldiv_by_digits or muldiv_by_bits -- 2^45
  local quotient, rest = by(a, part, m)
  return add(a * whole, quotient), rest
end

-- ceil(a * b / m), saturating.
local function muldiv_ceil(a, b, m)
  local quotient, rest = muldiv(a, b, m)
  return rest == 0 and quotient or add(quotient, 1)
end
