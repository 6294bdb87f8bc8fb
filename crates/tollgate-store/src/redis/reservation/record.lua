-- A record: 'O' for open or 'E' for ended, and its expiry in seven bytes; if ended, the end in
-- seven bytes, the expiry of the open record in seven, the length of the end's answer in four, and
-- the answer; then the body.

-- With the caller's clock, a record can expire before its key.
local function live(record, now)
  if record and now < struct.unpack('>I7', record, 2) then
    return record
  end
  return nil
end

local function has_ended(record)
  return string.sub(record, 1, 1) == 'E'
end

local function body_of(record)
  if has_ended(record) then
    return string.sub(record, 27 + struct.unpack('>I4', record, 23))
  end
  return string.sub(record, 9)
end
