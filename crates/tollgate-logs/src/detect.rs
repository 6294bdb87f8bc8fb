//! Detects the format of a file by its first lines.

use crate::entry::Entry;
use crate::format::{FORMATS, FormatError, FormatSpec, LineKind, ReadOptions};
use crate::merge::HeadLine;

/// How well a format reads some lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fit {
    pub(crate) requests: usize,
    /// Lines of the format that are not requests.
    pub(crate) others: usize,
    /// The time of the earliest request.
    pub(crate) first_us: Option<u64>,
    /// The number of the first line that the format cannot read, and why.
    pub(crate) bad: Option<(u64, String)>,
}

/// Tries a format on the first lines of a file.
pub(crate) fn fit(
    format: &FormatSpec,
    options: &ReadOptions,
    head: &[(u64, HeadLine)],
) -> Result<Fit, FormatError> {
    let mut reader = (format.build)(options)?;
    let mut fit = Fit::default();
    for (number, line) in head {
        let mut entry = Entry::default();
        let read = match line.text(*number) {
            Ok(line) => reader.read(line, &mut entry).map_err(|bad| bad.to_string()),
            Err(why) => Err(why.to_owned()),
        };
        match read {
            Ok(LineKind::Request) => {
                fit.requests += 1;
                let first_us = fit.first_us.unwrap_or(entry.time_us);
                fit.first_us = Some(first_us.min(entry.time_us));
            }
            Ok(_) => fit.others += 1,
            Err(bad) => {
                fit.bad.get_or_insert((*number, bad));
            }
        }
    }
    Ok(fit)
}

/// Returns the format that reads most requests in the first lines; of equals, the first in the
/// table.
pub(crate) fn detect(
    options: &ReadOptions,
    head: &[(u64, HeadLine)],
) -> Option<(&'static FormatSpec, Fit)> {
    // A template describes lines of nginx, so it does not apply to other formats.
    let options = ReadOptions { template: None, ..options.clone() };
    let fits =
        FORMATS.iter().filter_map(|format| Some((format, fit(format, &options, head).ok()?)));
    // Of equals, `max_by_key` returns the last.
    let best = fits.rev().max_by_key(|(_, fit)| (fit.requests, fit.others));
    best.filter(|(_, fit)| fit.requests + fit.others > 0)
}
