//! Writes unsigned numbers in decimal.

use alloc::vec::Vec;

/// 10^8, the number of values with up to eight digits.
const EIGHT_DIGITS: u64 = 100_000_000;

/// Appends the digits of a number.
// Always inlined: a call saves registers, which costs half as much as the conversion.
#[inline(always)]
pub fn push_decimal(out: &mut Vec<u8>, value: u64) {
    match value {
        0..10 => out.push(b'0' + value as u8),
        10..EIGHT_DIGITS => push_short(out, value),
        _ => push_long(out, value),
    }
}

/// Appends a number of up to eight digits.
#[inline]
fn push_short(out: &mut Vec<u8>, value: u64) {
    let (digits, zeros) = eight_digits(value);
    let end = out.len() + 8 - zeros;
    // Writes all eight bytes at once: a copy of variable length costs more than the conversion.
    out.extend_from_slice(&(digits >> (8 * zeros)).to_le_bytes());
    out.truncate(end);
}

/// Appends a number of more than eight digits. Not inlined: callers would save its registers for
/// every number.
#[inline(never)]
fn push_long(out: &mut Vec<u8>, value: u64) {
    push_decimal(out, value / EIGHT_DIGITS);
    out.extend_from_slice(&eight_digits(value % EIGHT_DIGITS).0.to_le_bytes());
}

/// Writes the digits of a number to `out` from `at` on, and returns where they end. Overwrites up
/// to seven bytes behind them, so there must be room for 8, 16 or 24 digits.
#[inline(always)]
pub(crate) fn write_decimal(out: &mut [u8], at: usize, value: u64) -> usize {
    if value >= EIGHT_DIGITS {
        return write_long(out, at, value);
    }
    let (digits, zeros) = eight_digits(value);
    out[at..at + 8].copy_from_slice(&(digits >> (8 * zeros)).to_le_bytes());
    at + 8 - zeros
}

/// Writes a number of more than eight digits.
#[cold]
fn write_long(out: &mut [u8], at: usize, value: u64) -> usize {
    let at = write_decimal(out, at, value / EIGHT_DIGITS);
    out[at..at + 8].copy_from_slice(&eight_digits(value % EIGHT_DIGITS).0.to_le_bytes());
    at + 8
}

/// Returns the eight digits of a number, the first in the lowest byte, and the number of leading
/// zeros, at most seven.
///
/// Computes all digits in one word: splits the number into two halves of four digits, then into
/// pairs, then into single digits.
#[inline]
fn eight_digits(number: u64) -> (u64, usize) {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let high = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = high | ((fours - 100 * high) << 16);
    let high = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = high | ((twos - 10 * high) << 8);
    let zeros = ones.trailing_zeros() as usize / 8;
    (ones | 0x3030_3030_3030_3030, zeros.min(7))
}

#[cfg(test)]
mod tests;
