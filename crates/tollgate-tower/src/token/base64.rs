//! Base64 decoding that accepts every spelling of a token that services accept.

/// The bytes of a text in either alphabet, with or without padding.
///
/// Services accept tokens with padding, with `+` and `/`, and with extra bits after the last byte.
/// Such a spelling is the same token here too. Otherwise a client could leave its limit by
/// re-encoding its token.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes() {
        bits = bits << 6 | u32::from(value(byte)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    // Six bits are less than a byte: the text is cut off.
    (count < 6).then_some(out)
}

fn value(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' | b'+' => 62,
        b'_' | b'/' => 63,
        _ => return None,
    })
}
