-- A reservation: 'O' for one that is open or 'E' for one that has ended, the instant of its expiry
-- in seven bytes; of an ended one its end in seven bytes, and what ending it answered behind its
-- length in four; then the body, as it was opened with.

-- Time may be the caller's, so a record can have expired while its key has not.
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
    return string.sub(record, 20 + struct.unpack('>I4', record, 16))
  end
  return string.sub(record, 9)
end
