//! MessagePack for the scripts: flat arrays of integers.

/// The largest number that Lua represents exactly.
pub(crate) const MOST: u64 = tollgate_core::MAX_US;

/// Encodes a flat array of integers.
pub(crate) fn array(numbers: &[i64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(5 + numbers.len() * 3);
    out.push(0xdd);
    out.extend_from_slice(&(numbers.len() as u32).to_be_bytes());
    numbers.iter().for_each(|number| push(&mut out, *number));
    out
}

fn push(out: &mut Vec<u8>, number: i64) {
    match number {
        0..0x80 => out.push(number as u8),
        0x80..0x1_0000 => {
            out.push(0xcd);
            out.extend_from_slice(&(number as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(0xce);
            out.extend_from_slice(&(number as u32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// Clamps to Lua's exact range, which changes no decision.
pub(crate) fn clamp(number: u64) -> i64 {
    number.min(MOST) as i64
}

/// Parses an array of exactly `N` integers, as written by `cmsgpack.pack`.
pub(crate) fn numbers<const N: usize>(bytes: &[u8]) -> Option<[i64; N]> {
    let mut rest = match N {
        0..16 => bytes.strip_prefix(&[0x90 | N as u8])?,
        _ => bytes.strip_prefix(&[0xdc, (N >> 8) as u8, N as u8])?,
    };
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = read(&mut rest)?;
    }
    rest.is_empty().then_some(numbers)
}

fn read(bytes: &mut &[u8]) -> Option<i64> {
    fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (taken, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*taken)
    }
    let [kind] = take(bytes)?;
    Some(match kind {
        0..0x80 => i64::from(kind),
        0xe0.. => i64::from(kind as i8),
        0xcc => i64::from(u8::from_be_bytes(take(bytes)?)),
        0xcd => i64::from(u16::from_be_bytes(take(bytes)?)),
        0xce => i64::from(u32::from_be_bytes(take(bytes)?)),
        0xcf => i64::try_from(u64::from_be_bytes(take(bytes)?)).ok()?,
        0xd0 => i64::from(i8::from_be_bytes(take(bytes)?)),
        0xd1 => i64::from(i16::from_be_bytes(take(bytes)?)),
        0xd2 => i64::from(i32::from_be_bytes(take(bytes)?)),
        0xd3 => i64::from_be_bytes(take(bytes)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
