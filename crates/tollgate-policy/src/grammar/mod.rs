//! Values that are written as text: one file per kind, each a function from text to value or
//! [`Problem`].

mod attribute;
mod duration;
mod host;
mod name;
mod network;
mod pattern;
mod rate;
mod size;
mod url;

use crate::diagnostic::Code;

pub(crate) use attribute::{attribute, header_name, is_built_in};
pub use duration::parse_duration_us;
pub(crate) use duration::{duration_us, format_us};
pub(crate) use host::host;
pub(crate) use name::name;
pub use network::parse_listen;
pub(crate) use network::{listen, network};
pub(crate) use pattern::pattern;
pub use rate::{WrittenRate, parse_rate};
pub(crate) use rate::{factor_milli, rate};
pub(crate) use size::size;
pub(crate) use url::{node, redis_url, upstream};

/// Why a text is not a value of its kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: &'static Code,
    pub(crate) message: String,
    pub(crate) help: String,
}

impl Problem {
    pub(crate) fn new(
        code: &'static Code,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { code, message: message.into(), help: help.into() }
    }
}

/// Splits `123abc` after its digits.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests;
