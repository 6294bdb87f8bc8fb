//! Ids of reservations: random, because knowing an id is enough to end the reservation.

/// Random bytes in a name: 192 bits, in 32 characters.
const BYTES: usize = 24;

/// The characters of a name, which need no escaping in JSON or in a URL.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A new name.
pub(in crate::front) fn new_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    let mut id = String::with_capacity(BYTES / 3 * 4);
    for &[a, b, c] in bytes.as_chunks::<3>().0 {
        let bits = u32::from_be_bytes([0, a, b, c]);
        for shift in [18, 12, 6, 0] {
            id.push(char::from(ALPHABET[(bits >> shift & 63) as usize]));
        }
    }
    Ok(id)
}
