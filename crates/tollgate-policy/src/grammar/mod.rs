//! Values written as text: rates, durations, sizes, names, networks, URLs, patterns.

mod names;
mod network;
mod pattern;
mod quantity;
mod rate;
mod url;

use crate::diagnostic::Code;

pub(crate) use names::host;
pub(crate) use names::name;
pub(crate) use names::{attribute, header_name, is_built_in};
pub use network::parse_listen;
pub(crate) use network::{listen, network};
pub(crate) use pattern::pattern;
pub use quantity::parse_duration_us;
pub(crate) use quantity::{duration_us, format_us, percent, share_ppm, size};
pub(crate) use rate::{factor_milli, rate};
pub(crate) use url::{node, redis_url, upstream};

/// Why a text is not a valid value.
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

#[cfg(test)]
mod tests;
