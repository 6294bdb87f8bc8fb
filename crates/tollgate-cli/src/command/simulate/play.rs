//! Decides the rows of a file up to an instant, for `tollgate explain --requests`.

use super::session::Session;
use super::tally::Tally;
use crate::command::Stop;
use crate::command::lab::{Loaded, unreadable};
use std::fs::File;
use std::path::Path;
use tollgate_logs::{Lines, NextLine};
use tollgate_server::front::http::decode::{self, BODY_BYTES_MAX};

/// Decides the rows of a file up to `until_us`, or all. Returns the time of the last one.
pub(crate) fn play(
    loaded: &Loaded,
    path: &Path,
    until_us: Option<u64>,
) -> Result<Option<u64>, Stop> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let tally = Tally::new(loaded.rules.policy().limits(), None);
    let paths = loaded.settings.ambiguous_paths();
    let mut session = Session::new(&loaded.gate, &loaded.rules, paths, tally, None);
    let (mut lines, mut last_us) = (Lines::new(file, BODY_BYTES_MAX + 1), None);
    loop {
        match lines.next() {
            NextLine::Line(_, line) if line.trim_ascii().is_empty() => {}
            NextLine::Line(number, line) | NextLine::TooLong(number, line) => {
                let bad = |why: String| Stop::Failed(format!("{}:{number}: {why}", path.display()));
                let row = decode::row(line).map_err(|why| bad(why.to_string()))?;
                if until_us.is_some_and(|until_us| row.time_us > until_us) {
                    continue;
                }
                last_us = last_us.max(Some(row.time_us));
                session.answer(number, line).map_err(bad)?;
            }
            NextLine::Empty => lines.fill().map_err(|error| unreadable(path, &error))?,
            NextLine::End => return Ok(last_us),
        }
    }
}
