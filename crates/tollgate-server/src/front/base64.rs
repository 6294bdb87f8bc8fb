//! Base64, and random ids in Base64.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters that need no escaping in JSON or in a URL.
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Random bytes of an id: 192 bits, 32 characters without padding.
const ID_BYTES: usize = 24;

/// Creates the id of a reservation. It is random, because the id alone authorizes the end of the
/// reservation.
pub(super) fn new_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(encode_with(URL_SAFE, &bytes))
}

/// Encodes as Base64 with padding.
pub(super) fn encode(bytes: &[u8]) -> String {
    encode_with(STANDARD, bytes)
}

fn encode_with(digits: &[u8; 64], bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = digits[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= chunk.len() { digit.into() } else { '=' });
        }
    }
    out
}
