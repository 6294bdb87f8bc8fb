//! Exact products and quotients with intermediate values beyond 64 bits.

use core::ops::{Add, Sub};

/// A divisor and its inverse. Multiplying by the inverse is several times faster than dividing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Divisor {
    value: u64,
    /// 2^64 / value, rounded down.
    inverse: u64,
}

impl Divisor {
    /// Creates a divisor. Zero is allowed, but dividing by it is meaningless.
    pub(crate) const fn new(value: u64) -> Self {
        let inverse = match u64::MAX.checked_div(value) {
            Some(inverse) => inverse,
            None => 0,
        };
        Self { value, inverse }
    }

    #[inline(always)]
    pub(crate) const fn get(self) -> u64 {
        self.value
    }

    /// Returns `floor(n / self)` and the remainder.
    #[inline(always)]
    pub(crate) const fn div_rem(self, n: u64) -> (u64, u64) {
        // The inverse is too small by at most one, so the quotient is exact or one too small.
        let quotient = ((n as u128 * self.inverse as u128) >> 64) as u64;
        let rest = n - quotient * self.value;
        if rest < self.value { (quotient, rest) } else { (quotient + 1, rest - self.value) }
    }

    /// `ceil(a * b / self)`.
    #[inline(always)]
    pub(crate) fn mul_div_ceil(self, a: u64, b: u64) -> u64 {
        match a.checked_mul(b) {
            Some(product) => div_ceil_wide(product, self),
            None => mul_div_ceil_wide(a, b, self.value),
        }
    }
}

/// Returns `ceil(a * b / m)`; zero if `m` is zero. Most limits stay within 64 bits, where division
/// is several times faster.
#[inline(always)]
pub(crate) fn mul_div_ceil(a: u64, b: u64, m: u64) -> u64 {
    match a.checked_mul(b) {
        // Division by zero must not panic: the compiler removes an unused result only if the code
        // cannot panic.
        Some(product) => {
            let (quotient, rest) =
                (product.checked_div(m).unwrap_or(0), product.checked_rem(m).unwrap_or(0));
            quotient + u64::from(rest != 0)
        }
        None => mul_div_ceil_wide(a, b, m),
    }
}

#[cold]
fn mul_div_ceil_wide(a: u64, b: u64, m: u64) -> u64 {
    let (product, m) = (u128::from(a) * u128::from(b), u128::from(m));
    let quotient = product.checked_div(m).unwrap_or(0);
    let rest = product.checked_rem(m).unwrap_or(0);
    u64::try_from(quotient + u128::from(rest != 0)).unwrap_or(u64::MAX)
}

/// A scaled quantity. 128 bits hold all values; 64 bits hold those of nearly every limit in use and
/// are several times faster. Callers choose 64 bits only if nothing overflows.
pub(crate) trait BacklogInt: Copy + Ord + Add<Output = Self> + Sub<Output = Self> {
    /// `a * b`.
    fn product(a: u64, b: u64) -> Self;
    /// `self - other`; `None` if that is negative.
    fn checked_sub(self, other: Self) -> Option<Self>;
    /// `floor(self / by)` and the remainder, saturating to 64 bits.
    fn div_rem(self, by: Divisor) -> (u64, u64);
    /// `self`, saturating to 64 bits.
    fn to_u64(self) -> u64;
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

    #[inline(always)]
    fn div_rem(self, by: Divisor) -> (u64, u64) {
        by.div_rem(self)
    }

    #[inline(always)]
    fn to_u64(self) -> u64 {
        self
    }
}

impl BacklogInt for u128 {
    fn product(a: u64, b: u64) -> Self {
        Self::from(a) * Self::from(b)
    }

    fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_sub(other)
    }

    fn div_rem(self, by: Divisor) -> (u64, u64) {
        if let Ok(narrow) = u64::try_from(self) {
            return by.div_rem(narrow);
        }
        let by = Self::from(by.value);
        ((self / by).to_u64(), (self % by) as u64)
    }

    fn to_u64(self) -> u64 {
        u64::try_from(self).unwrap_or(u64::MAX)
    }
}

/// `ceil(a / by)` for scaled quantities, saturating to 64 bits.
#[inline(always)]
pub(crate) fn div_ceil_wide(a: impl BacklogInt, by: Divisor) -> u64 {
    let (quotient, rest) = a.div_rem(by);
    quotient.saturating_add(u64::from(rest != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// Values around powers of two and around everyday periods.
    fn edges() -> Vec<u64> {
        let around = |bits: u32| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1];
        let mut edges: Vec<u64> = (1..64).flat_map(around).collect();
        edges.extend([
            1_000,
            60_000_000,
            3_600_000_000,
            31_622_400_000_000,
            u64::MAX - 1,
            u64::MAX,
        ]);
        edges
    }

    #[test]
    fn a_divisor_divides_exactly_at_the_edges() {
        let edges = edges();
        for &by in &edges {
            for &n in edges.iter().chain([&0]) {
                assert_eq!(Divisor::new(by).div_rem(n), (n / by, n % by), "{n} / {by}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_divisor_divides_exactly(n: u64, by in 1..u64::MAX, shift in 0..63_u32, by_shift in 0..63_u32) {
            let (n, by) = (n >> shift, (by >> by_shift).max(1));
            prop_assert_eq!(Divisor::new(by).div_rem(n), (n / by, n % by));
        }

        #[test]
        fn products_are_divided_exactly(a: u64, b: u64, m in 1..u64::MAX, shift in 0..40_u32) {
            let (a, b) = (a >> shift, b >> shift);
            let exact = (u128::from(a) * u128::from(b)).div_ceil(u128::from(m));
            let exact = u64::try_from(exact).unwrap_or(u64::MAX);
            prop_assert_eq!(mul_div_ceil(a, b, m), exact);
            prop_assert_eq!(Divisor::new(m).mul_div_ceil(a, b), exact);
        }
    }
}
