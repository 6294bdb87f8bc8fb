//! Which format a file has, by its first lines.

use crate::entry::Entry;
use crate::format::{FORMATS, FormatError, FormatSpec, LineKind, ReadOptions};

/// The first lines that are tried.
const LINES: usize = 64;

/// How well a format reads some lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fit {
    pub(crate) requests: usize,
    /// The earliest of them.
    pub(crate) first_us: Option<u64>,
    /// The number of the first line that it cannot read, and why.
    pub(crate) bad: Option<(u64, String)>,
}

/// Tries a format on the first lines of a file.
pub(crate) fn fit(
    format: &FormatSpec,
    options: &ReadOptions,
    head: &[u8],
) -> Result<Fit, FormatError> {
    let mut reader = (format.build)(options)?;
    let mut fit = Fit::default();
    for (number, line) in (1..).zip(head.split(|byte| *byte == b'\n')).take(LINES) {
        let Ok(line) = str::from_utf8(line) else { continue };
        let line = line.trim_end();
        if line.is_empty() {
            continue;
        }
        let mut entry = Entry::default();
        match reader.read(line, &mut entry) {
            Ok(LineKind::Request) => {
                fit.requests += 1;
                let first_us = fit.first_us.unwrap_or(entry.time_us);
                fit.first_us = Some(first_us.min(entry.time_us));
            }
            Ok(_) => {}
            Err(bad) => {
                fit.bad.get_or_insert((number, bad.to_string()));
            }
        }
    }
    Ok(fit)
}

/// The format that reads most of the first lines; of equal ones the first of the table.
pub(crate) fn detect(options: &ReadOptions, head: &[u8]) -> Option<&'static FormatSpec> {
    // A template describes lines of nginx, so it says nothing about other formats.
    let options = ReadOptions { template: None, ..options.clone() };
    let mut best: Option<(usize, &FormatSpec)> = None;
    for format in FORMATS {
        let requests = fit(format, &options, head).map_or(0, |fit| fit.requests);
        if requests > best.map_or(0, |(most, _)| most) {
            best = Some((requests, format));
        }
    }
    best.map(|(_, format)| format)
}
