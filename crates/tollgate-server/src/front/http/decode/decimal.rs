//! A whole number from the digits of a JSON number, never through a float: a double has 53 bits,
//! and few decimal fractions are among its values.

/// Why a number is not a whole one in range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecimalError {
    /// More digits before the point than are wanted.
    TooLarge,
    /// Something is left after the point.
    TooFine,
}

/// `text x 10^places`, of at most `digits_max` digits. `text` is a JSON number without a sign, well
/// formed already; however it is written, the same number is the same.
pub(super) fn parse_scaled(text: &str, places: i64, digits_max: i64) -> Result<u64, DecimalError> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));

    // The value is `digits x 10^scale`, where `digits` neither starts nor ends with a zero.
    let mut fraction = fraction.trim_end_matches('0');
    let mut whole = whole.trim_start_matches('0');
    let mut scale = exponent.saturating_add(places).saturating_sub(fraction.len() as i64);
    if fraction.is_empty() {
        let zeros = whole.len();
        whole = whole.trim_end_matches('0');
        scale = scale.saturating_add((zeros - whole.len()) as i64);
    }
    if whole.is_empty() {
        fraction = fraction.trim_start_matches('0');
    }
    let digits = (whole.len() + fraction.len()) as i64;
    if digits == 0 {
        return Ok(0);
    }
    if scale.saturating_add(digits) > digits_max {
        return Err(DecimalError::TooLarge);
    }
    let scale = u32::try_from(scale).map_err(|_| DecimalError::TooFine)?;
    let significant = whole.bytes().chain(fraction.bytes()).try_fold(0, |value: u64, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit.wrapping_sub(b'0')))
    });
    significant
        .and_then(|significant| significant.checked_mul(10_u64.checked_pow(scale)?))
        .ok_or(DecimalError::TooLarge)
}

/// An exponent; one that does not fit is as good as the largest that does.
fn parse_exponent(text: &str) -> i64 {
    text.parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX })
}
