//! Exact products and quotients that may leave 64 bits on the way.

use core::ops::{Add, Sub};

/// `floor(a * b / m)` and the rest. Most limits stay within 64 bits, where the division is several
/// times faster.
#[inline]
pub(crate) fn mul_div(a: u64, b: u64, m: u64) -> (u64, u64) {
    match a.checked_mul(b) {
        Some(product) => (product / m, product % m),
        None => {
            let (product, m) = (u128::from(a) * u128::from(b), u128::from(m));
            (u64::try_from(product / m).unwrap_or(u64::MAX), (product % m) as u64)
        }
    }
}

/// `ceil(a * b / m)`.
#[inline]
pub(crate) fn mul_div_ceil(a: u64, b: u64, m: u64) -> u64 {
    let (quotient, rest) = mul_div(a, b, m);
    quotient.saturating_add(u64::from(rest != 0))
}

/// A scaled quantity: 128 bits hold every one there is, and 64 bits those of nearly every limit in
/// use, several times faster. Callers choose 64 bits only where nothing overflows.
pub(crate) trait BacklogInt: Copy + Ord + Add<Output = Self> + Sub<Output = Self> {
    /// `a * b`.
    fn product(a: u64, b: u64) -> Self;
    /// `self - other`, unless that is below zero.
    fn checked_sub(self, other: Self) -> Option<Self>;
    /// `floor(self / b)` and the rest, saturating to 64 bits.
    fn div_rem(self, b: u64) -> (u64, u64);
}

impl BacklogInt for u64 {
    #[inline]
    fn product(a: u64, b: u64) -> Self {
        a * b
    }

    #[inline]
    fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_sub(other)
    }

    #[inline]
    fn div_rem(self, b: u64) -> (u64, u64) {
        if b == 1 { (self, 0) } else { (self / b, self % b) }
    }
}

impl BacklogInt for u128 {
    fn product(a: u64, b: u64) -> Self {
        Self::from(a) * Self::from(b)
    }

    fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_sub(other)
    }

    fn div_rem(self, b: u64) -> (u64, u64) {
        if let Ok(narrow) = u64::try_from(self) {
            return narrow.div_rem(b);
        }
        let b = Self::from(b);
        (u64::try_from(self / b).unwrap_or(u64::MAX), (self % b) as u64)
    }
}

/// `ceil(a / b)` for scaled quantities, saturating to 64 bits.
#[inline]
pub(crate) fn div_ceil_wide(a: impl BacklogInt, b: u64) -> u64 {
    let (quotient, rest) = a.div_rem(b);
    quotient.saturating_add(u64::from(rest != 0))
}

/// `floor(a / b)` and the rest for scaled quantities, saturating to 64 bits.
#[inline]
pub(crate) fn div_rem_wide(a: impl BacklogInt, b: u64) -> (u64, u64) {
    a.div_rem(b)
}
