-- Merges two tables that nodes share, changes one name, and stores the result. KEYS[1] is the
-- stored table. ARGV[5] has the change in its first line, which may be empty, then the caller's
-- table. A line is `version, state, name, value`, separated by tabs; state `-` is cleared.
--
-- Versions are digits of one length, so that they compare as numbers in any locale. Of two values
-- of one name the later version wins, whichever node merges and in any order.
--
-- Returns the table, or nothing where it has no room for another name.

local MOST = 256
local LINE = '(%d+)\t([-+])\t([^\t\n]+)\t([^\n]*)\n'

local versions, lines, names, last = {}, {}, {}, 0
local function put(version, state, name, value)
  -- Another length would compare as a later version for ever.
  if #version ~= 36 then
    return
  end
  if not versions[name] then
    names[#names + 1] = name
  end
  if not versions[name] or version > versions[name] then
    versions[name] = version
    lines[name] = table.concat({ version, state, name, value }, '\t') .. '\n'
  end
  last = math.max(last, tonumber(string.sub(version, 1, 16)))
end

local function is_cleared(name)
  return string.sub(lines[name], #versions[name] + 2, #versions[name] + 2) == '-'
end

local stored = redis.call('GET', KEYS[1]) or ''
local change, known = string.match(ARGV[5], '^([^\n]*\n)(.*)$')
for _, text in ipairs({ stored, known }) do
  for version, state, name, value in string.gmatch(text, LINE) do
    put(version, state, name, value)
  end
end
local nonce, state, name, value = string.match(change, LINE)
if nonce then
  put(string.format('%016.0f', last + 1) .. nonce, state, name, value)
end

-- Names that were cleared longest ago make room.
table.sort(names, function(a, b) return versions[a] < versions[b] end)
local left, kept = #names, {}
for _, one in ipairs(names) do
  if left > MOST and is_cleared(one) then
    left = left - 1
  else
    kept[#kept + 1] = lines[one]
  end
end
if nonce and left > MOST then
  return false
end
local merged = table.concat(kept)
if merged ~= stored then
  -- Ten years: every key expires, and nodes that know the table write it again.
  redis.call('SET', KEYS[1], merged, 'PX', '315360000000')
end
return merged
