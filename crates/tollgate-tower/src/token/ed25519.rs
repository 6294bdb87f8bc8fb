//! Whether 32 bytes are a public key of Ed25519 (RFC 8032 5.1.3). ring finds out only while it verifies, and then does not say.
//!
//! Numbers are four words, the lowest first. Speed does not matter: this runs when a file of keys is read.

type Number = [u64; 4];

/// 2^255 - 19.
const P: Number = [0xffff_ffff_ffff_ffed, u64::MAX, u64::MAX, 0x7fff_ffff_ffff_ffff];
/// (P - 1) / 2.
const HALF: Number = [0xffff_ffff_ffff_fff6, u64::MAX, u64::MAX, 0x3fff_ffff_ffff_ffff];
const ONE: Number = [1, 0, 0, 0];
/// The curve's constant.
const D: Number = words(&[
    0xa3, 0x78, 0x59, 0x13, 0xca, 0x4d, 0xeb, 0x75, 0xab, 0xd8, 0x41, 0x41, 0x4d, 0x0a, 0x70, 0x00,
    0x98, 0xe8, 0x79, 0x77, 0x79, 0x40, 0xc7, 0x8c, 0x73, 0xfe, 0x6f, 0x2b, 0xee, 0x6c, 0x03, 0x52,
]);
/// The `y` of points whose order is 8; its negative is that of the others.
const ORDER_8: Number = words(&[
    0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
    0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
]);

/// Whether these bytes are a point of the curve, and none of the eight with which anyone can sign.
pub(super) fn is_point(bytes: &[u8; 32]) -> bool {
    let mut y = words(bytes);
    y[3] &= u64::MAX >> 1;
    let zero = [0; 4];
    let weak = [zero, ONE, minus(&zero, &ONE), ORDER_8, minus(&zero, &ORDER_8)];
    if !is_less(&y, &P) || weak.contains(&y) {
        return false;
    }
    // x^2 = (y^2 - 1) / (d y^2 + 1) has a root where numerator times denominator has one.
    let square = times(&y, &y);
    let (numerator, denominator) = (minus(&square, &ONE), plus(&times(&D, &square), &ONE));
    power(&times(&numerator, &denominator), &HALF) == ONE
}

const fn words(bytes: &[u8; 32]) -> Number {
    let mut out = [0; 4];
    let mut place = 0;
    while place < 32 {
        out[place / 8] |= (bytes[place] as u64) << (place % 8 * 8);
        place += 1;
    }
    out
}

fn is_less(a: &Number, b: &Number) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

/// `a + b`, both below P.
fn plus(a: &Number, b: &Number) -> Number {
    let mut carry = 0;
    let mut sum = [0; 4];
    for (place, word) in sum.iter_mut().enumerate() {
        let total = u128::from(a[place]) + u128::from(b[place]) + carry;
        *word = total as u64;
        carry = total >> 64;
    }
    if is_less(&sum, &P) { sum } else { less(&sum, &P) }
}

/// `a - b`, both below P.
fn minus(a: &Number, b: &Number) -> Number {
    if *b == [0; 4] { *a } else { plus(a, &less(&P, b)) }
}

/// `a - b`, where `b` is not above `a`.
fn less(a: &Number, b: &Number) -> Number {
    let mut borrow = false;
    let mut out = [0; 4];
    for (place, word) in out.iter_mut().enumerate() {
        let (once, first) = a[place].overflowing_sub(b[place]);
        let (twice, second) = once.overflowing_sub(u64::from(borrow));
        (*word, borrow) = (twice, first || second);
    }
    out
}

/// `a * b`, both below P.
fn times(a: &Number, b: &Number) -> Number {
    let mut wide = [0_u64; 8];
    for (i, x) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, y) in b.iter().enumerate() {
            let total = u128::from(*x) * u128::from(*y) + u128::from(wide[i + j]) + carry;
            wide[i + j] = total as u64;
            carry = total >> 64;
        }
        wide[i + 4] = carry as u64;
    }
    // 2^256 is 38 more than a multiple of P, so what is above it counts 38 times below it.
    let mut carry = 0;
    let mut out = [0; 4];
    for (place, word) in out.iter_mut().enumerate() {
        let total = u128::from(wide[place]) + u128::from(wide[place + 4]) * 38 + carry;
        *word = total as u64;
        carry = total >> 64;
    }
    while carry > 0 {
        carry *= 38;
        for word in &mut out {
            let total = u128::from(*word) + carry;
            *word = total as u64;
            carry = total >> 64;
        }
    }
    while !is_less(&out, &P) {
        out = less(&out, &P);
    }
    out
}

/// `base` to the power of `exponent`.
fn power(base: &Number, exponent: &Number) -> Number {
    (0..256).rev().fold(ONE, |product, bit| {
        let square = times(&product, &product);
        match exponent[bit / 64] >> (bit % 64) & 1 {
            1 => times(&square, base),
            _ => square,
        }
    })
}

#[cfg(test)]
mod tests;
