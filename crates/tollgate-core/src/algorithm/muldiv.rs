//! Exact products and quotients that may leave 64 bits on the way.

/// `floor(a * b / m)` and the rest. Most limits stay within 64 bits, where the division is several times faster.
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
pub(crate) fn mul_div_ceil(a: u64, b: u64, m: u64) -> u64 {
    let (quotient, rest) = mul_div(a, b, m);
    quotient.saturating_add(u64::from(rest != 0))
}

/// `ceil(a / b)` for scaled quantities, saturating to 64 bits.
pub(crate) fn div_ceil_wide(a: u128, b: u64) -> u64 {
    match u64::try_from(a) {
        Ok(a) if b == 1 => a,
        Ok(a) => a.div_ceil(b),
        Err(_) => u64::try_from(a.div_ceil(u128::from(b))).unwrap_or(u64::MAX),
    }
}

/// `floor(a / b)` and the rest for scaled quantities, saturating to 64 bits.
pub(crate) fn div_rem_wide(a: u128, b: u64) -> (u64, u64) {
    match u64::try_from(a) {
        Ok(a) if b == 1 => (a, 0),
        Ok(a) => (a / b, a % b),
        Err(_) => {
            let b = u128::from(b);
            (u64::try_from(a / b).unwrap_or(u64::MAX), (a % b) as u64)
        }
    }
}
