//! Which of a cluster's slots a key is in.

/// How many there are.
pub(crate) const SLOTS: usize = 16_384;

/// The slot of `key`: by what stands in its first pair of braces, if anything does.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let braced = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let tag = &key[open + 1..];
        let end = tag.iter().position(|byte| *byte == b'}')?;
        (end > 0).then(|| &tag[..end])
    });
    crc16(braced.unwrap_or(key)) % SLOTS as u16
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    })
}

#[cfg(test)]
mod tests;
