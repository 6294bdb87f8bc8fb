//! Rates, parsed by `tollgate-core`, with the error codes of the file; and the factor of a penalty.

use super::Problem;
use crate::diagnostic::{codes, quoted};
use tollgate_core::written_rate::{InvalidWrittenRate, WrittenRate, split_digits};

/// [`WrittenRate::parse`], with an error that a report can show.
pub(crate) fn rate(text: &str) -> Result<WrittenRate, Problem> {
    WrittenRate::parse(text).map_err(|invalid| match invalid {
        InvalidWrittenRate::CountTooLarge => {
            let message = format!("{} is too large", quoted(split_digits(text).0));
            Problem::new(codes::COUNT_TOO_LARGE, message, "the largest number is 4294967295")
        }
        InvalidWrittenRate::NotARate(help) => {
            Problem::new(codes::BAD_RATE, format!("{} is not a rate", quoted(text)), help)
        }
        _ => Problem::new(
            codes::PERIOD_OUT_OF_RANGE,
            format!("the period of {} is too long", quoted(text)),
            "a period is between 1ms and 366d",
        ),
    })
}

/// Parses a decimal with up to three places into thousandths.
pub(crate) fn factor_milli(text: &str) -> Result<u64, Problem> {
    let bad = || {
        let message = format!("{} is not a factor", quoted(text));
        let help = "write a number with at most three decimal places, such as `2` or `1.5`";
        Problem::new(codes::BAD_FACTOR, message, help)
    };
    let (whole, places) = match text.split_once('.') {
        Some((whole, places)) => (whole, places),
        None => (text, "0"),
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (kept, rest) = places.split_at_checked(3).unwrap_or((places, ""));
    if !digits(whole) || !digits(places) || rest.bytes().any(|byte| byte != b'0') {
        return Err(bad());
    }
    let milli = format!("{kept:0<3}").parse::<u64>().map_err(|_| bad())?;
    let whole = whole.parse::<u64>().ok().filter(|whole| *whole <= 1_000_000);
    whole.map(|whole| whole * 1_000 + milli).ok_or_else(|| {
        let message = format!("the factor {} is too large", quoted(text));
        Problem::new(codes::OUT_OF_RANGE, message, "a factor is between 1 and 1000000")
    })
}
