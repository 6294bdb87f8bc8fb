//! The JSON answer of the check API, written straight into a byte buffer: a million rows a second is the
//! least that `simulate` promises, and a JSON value per answer would cost more than the decision.

pub mod fields;

use tollgate::{Row, Verdict, limit::Mode};

/// Appends `{"allowed": ..., "limits": [...]` without the closing brace, so that a caller can add members.
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
    rows(out, &verdict.rows);
}

/// Appends the array of limits.
pub fn rows(out: &mut Vec<u8>, rows: &[Row<'_>]) {
    out.push(b'[');
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        self::row(out, row);
    }
    out.push(b']');
}

fn row(out: &mut Vec<u8>, row: &Row<'_>) {
    let shown = |figure: u64| row.limit.disclose.then_some(figure);
    out.extend_from_slice(b"{\"name\":");
    string(out, &row.limit.name);
    out.extend_from_slice(b",\"allowed\":");
    boolean(out, row.outcome.admitted);
    out.extend_from_slice(b",\"limit\":");
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

/// Appends an unsigned integer.
pub fn integer(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends microseconds as decimal seconds: exact, with one place at least and six at most.
pub fn seconds(out: &mut Vec<u8>, us: u64) {
    integer(out, us / 1_000_000);
    out.push(b'.');
    let mut rest = us % 1_000_000;
    let mut unit = 100_000;
    loop {
        out.push(b'0' + (rest / unit) as u8);
        rest %= unit;
        unit /= 10;
        if rest == 0 {
            break;
        }
    }
}

/// Appends a JSON string.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests;
