//! The command line.

use crate::contestant::Limit;
use crate::traffic::Traffic;
use std::path::PathBuf;
use tollgate_core::written_rate::unit_us;

pub(crate) struct Arguments {
    pub(crate) limit: Limit,
    pub(crate) input: Input,
    /// The page to write; pictures go to `pictures/` beside it.
    pub(crate) page: Option<PathBuf>,
}

pub(crate) enum Input {
    Generated(Traffic),
    Logs { files: Vec<PathBuf>, format: Option<String> },
}

impl Arguments {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut files, mut format, mut page) = (Vec::new(), None, None);
        let mut traffic = Traffic::default();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            let number = || value.parse().map_err(|_| format!("`{value}` is not a number"));
            match name.as_str() {
                "--seed" => traffic.seed = number()?,
                "--sources" => traffic.sources = number()?,
                "--requests" => traffic.requests = number()?,
                "--limit" => traffic.limit = parse_limit(&value)?,
                "--log" => files.push(value.into()),
                "--format" => format = Some(value),
                "--page" => page = Some(value.into()),
                other => return Err(format!("unexpected argument `{other}`")),
            }
        }
        if traffic.sources == 0 {
            return Err("`--sources` must be at least 1".into());
        }
        let limit = traffic.limit;
        let input = match files.is_empty() {
            true => Input::Generated(traffic),
            false => Input::Logs { files, format },
        };
        Ok(Self { limit, input, page })
    }
}

/// Parses a limit such as `100/min`. The count is at least 10, so that a fifth of it is a burst.
fn parse_limit(text: &str) -> Result<Limit, String> {
    let parsed = text.split_once('/').and_then(|(count, unit)| {
        let count = count.parse::<u64>().ok().filter(|count| (10..=1_000_000).contains(count))?;
        let window_us = unit_us(unit).filter(|us| *us >= 1_000_000)?;
        Some(Limit { count, window_us })
    });
    parsed.ok_or_else(|| format!("`{text}` is not a limit such as 100/min, of 10 to 1000000"))
}
