//! Encodes answers of the check API: status, headers and JSON body, into a byte buffer.
//!
//! `simulate` writes a million answers a second. Building a JSON value for each would cost more
//! than the decision.

use tollgate::engine::{Row, SettledReservation, Verdict, limit::Mode};
pub use tollgate_core::push_decimal as integer;
use tollgate_tower::refusal_status;
pub use tollgate_tower::render_headers;

/// The status: 200 if admitted, else that of the refusal.
pub fn status(verdict: &Verdict<'_>) -> u16 {
    if verdict.allowed { 200 } else { refusal_status(verdict) }
}

/// Appends `{"allowed": ..., "limits": [...]` without the closing brace, so that a caller can add
/// members.
pub fn verdict(out: &mut Vec<u8>, verdict: &Verdict<'_>) {
    out.extend_from_slice(b"{\"allowed\":");
    boolean(out, verdict.allowed);
    out.extend_from_slice(b",\"delay\":");
    seconds(out, verdict.delay_us);
    out.extend_from_slice(b",\"retry_after\":");
    optional(out, verdict.retry_after_us, seconds);
    out.extend_from_slice(b",\"source\":\"");
    out.extend_from_slice(verdict.source.as_str().as_bytes());
    out.extend_from_slice(b"\",\"limits\":");
    rows(out, verdict.rows.iter().copied());
}

/// Appends `,"reservation": ..., "expires_after": ...` to a verdict.
pub fn reserved(out: &mut Vec<u8>, id: &str, ttl_us: u64) {
    out.extend_from_slice(b",\"reservation\":");
    string(out, id);
    out.extend_from_slice(b",\"expires_after\":");
    seconds(out, ttl_us);
}

/// Appends `{"reservation": ..., "charged": ..., "limits": [...]` without the closing brace.
pub fn settled(out: &mut Vec<u8>, id: &str, settled: &SettledReservation) {
    out.extend_from_slice(b"{\"reservation\":");
    string(out, id);
    out.extend_from_slice(b",\"charged\":");
    integer(out, settled.charged);
    out.extend_from_slice(b",\"limits\":");
    rows(out, settled.rows());
}

/// Appends the array of limits.
#[inline]
pub fn rows<'r>(out: &mut Vec<u8>, rows: impl IntoIterator<Item = Row<'r>>) {
    out.push(b'[');
    for (index, row) in rows.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        self::row(out, &row);
    }
    out.push(b']');
}

fn row(out: &mut Vec<u8>, row: &Row<'_>) {
    let shown = |figure: u64| row.limit.disclose.then_some(figure);
    // Room for the whole row, unless the name has escapes.
    out.reserve(row.limit.name.len() + 256);
    out.extend_from_slice(b"{\"name\":");
    string(out, &row.limit.name);
    let (yes, no) = (b",\"allowed\":true,\"limit\":", b",\"allowed\":false,\"limit\":");
    out.extend_from_slice(if row.outcome.admitted { yes } else { no });
    optional(out, shown(row.outcome.limit), integer);
    out.extend_from_slice(b",\"remaining\":");
    optional(out, shown(row.outcome.remaining), integer);
    out.extend_from_slice(b",\"reset_after\":");
    optional(out, shown(row.outcome.reset_after_us), seconds);
    out.extend_from_slice(b",\"retry_after\":");
    optional(out, row.outcome.retry_after_us, seconds);
    out.extend_from_slice(match row.limit.mode {
        Mode::Shadow => b",\"mode\":\"shadow\",\"source\":\"".as_slice(),
        _ => b",\"mode\":\"enforce\",\"source\":\"".as_slice(),
    });
    out.extend_from_slice(row.source.as_str().as_bytes());
    out.extend_from_slice(b"\"}");
}

fn boolean(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

fn optional(out: &mut Vec<u8>, value: Option<u64>, write: impl Fn(&mut Vec<u8>, u64)) {
    match value {
        Some(value) => write(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

/// The digits `00` to `99`: two per division.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    pairs
};

/// Appends microseconds as exact decimal seconds, with one to six places.
pub fn seconds(out: &mut Vec<u8>, us: u64) {
    // Most waits are zero.
    if us == 0 {
        out.extend_from_slice(b"0.0");
        return;
    }
    integer(out, us / 1_000_000);
    let rest = (us % 1_000_000) as usize;
    if rest == 0 {
        out.extend_from_slice(b".0");
        return;
    }
    let [a, b] = PAIRS[rest / 10_000];
    let [c, d] = PAIRS[rest / 100 % 100];
    let [e, f] = PAIRS[rest % 100];
    let places = [b'.', a, b, c, d, e, f];
    let zeros = places.iter().rev().take_while(|&&place| place == b'0').count();
    out.extend_from_slice(&places[..places.len() - zeros]);
}

/// Appends a JSON string.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    if text.bytes().any(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        escaped(out, text);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
}

fn escaped(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests;
