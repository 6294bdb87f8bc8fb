//! Fields as lines of HTTP/1.

/// One field, its name in lower case as the full protocol has it.
#[inline]
pub(super) fn line(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    lower(name, out);
    known(b": ", value, out);
}

/// A value after what stands before it, and the end of the line.
#[inline]
pub(super) fn known<const N: usize>(opening: &[u8; N], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(opening);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

const WORD: usize = size_of::<u64>();

/// Appends a name in lower case, in words: most names have eight bytes and more, and the last word may begin within the one before it.
fn lower(name: &[u8], out: &mut Vec<u8>) {
    let Some((_, last)) = name.split_last_chunk::<WORD>() else {
        out.extend(name.iter().map(u8::to_ascii_lowercase));
        return;
    };
    let end = out.len() + name.len();
    for word in name.as_chunks::<WORD>().0 {
        out.extend_from_slice(&lower_word(*word));
    }
    out.truncate(end - WORD);
    out.extend_from_slice(&lower_word(*last));
}

/// The same eight bytes in lower case. Each letter differs by one bit, which is set where a byte is at least `A` and at most `Z`.
fn lower_word(bytes: [u8; WORD]) -> [u8; WORD] {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(bytes);
    let low = word & (ONES * 0x7f);
    // The top bit of each byte, where that is at least this.
    let at_least = |least: u8| low + ONES * u64::from(0x80 - least);
    let capitals = at_least(b'A') & !at_least(b'Z' + 1) & !word & (ONES * 0x80);
    (word | capitals >> 2).to_le_bytes()
}

#[cfg(test)]
mod tests;
