//! `log` and `usage`.

use crate::compile::fields::{duration_us, not_empty, number, required, word};
use crate::diagnostic::{Report, codes, quoted};
use crate::grammar;
use crate::raw::{self, Field, LoggedDecisions, SizeText, Text};
use crate::settings::{AccessLog, DecisionLog, LogSink, Logs, Usage};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

const MIB: u64 = 1 << 20;
const MINUTE_US: u64 = 60_000_000;
const DAY_US: u64 = 24 * 60 * MINUTE_US;
/// Smaller files would be rotated every few lines.
const FILE_BYTES: (u64, u64) = (4096, 1 << 40);

pub(crate) fn logs(file: &raw::File, report: &mut Report) -> Logs {
    let Some(log) = &file.log else { return Logs::default() };
    let decisions = log.decisions.as_ref().and_then(|decisions| {
        let sample = decisions.sample.as_ref();
        let sample = sample.and_then(|text| report.accept(text.at, grammar::share_ppm(text)));
        let sink = sink(&decisions.to, &decisions.rotate, report);
        let refused_only = word(&decisions.only) == LoggedDecisions::Refused;
        sink.map(|sink| DecisionLog { refused_only, sample_ppm: sample.unwrap_or(1_000_000), sink })
    });
    let access = log.access.as_ref().and_then(|access| {
        let sink = sink(&access.to, &access.rotate, report);
        sink.map(|sink| AccessLog { format: word(&access.format), sink })
    });
    let sinks = [decisions.as_ref().map(|log| &log.sink), access.as_ref().map(|log| &log.sink)];
    let [first, second] = sinks.map(|sink| sink.and_then(file_of));
    if let (Some(written), true) =
        (log.access.as_ref().and_then(|log| log.to.as_ref()), first.is_some() && first == second)
    {
        let message = format!("{} is the file of both logs", quoted(written));
        report.error(codes::REPEATED, written.at, message, "give each log a file of its own");
    }
    if let Some(usage) = file.usage.as_ref().and_then(|usage| usage.file.as_ref())
        && [first, second].contains(&Some(normal(usage)))
    {
        let message = format!("{} is the file of a log, and of `usage`", quoted(usage));
        report.error(codes::REPEATED, usage.at, message, "give `usage` a file of its own");
    }
    Logs { decisions, access }
}

fn file_of(sink: &LogSink) -> Option<PathBuf> {
    match sink {
        LogSink::File { path, .. } => Some(normal(path)),
        LogSink::Stderr => None,
    }
}

/// Removes `.` and `..` from the path, without reading the file system.
fn normal(path: &str) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if parts.file_name().is_some() => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}

/// Returns the destination of log lines; `None` if they are not written.
fn sink(to: &Field<Text>, rotate: &Field<raw::Rotate>, report: &mut Report) -> Option<LogSink> {
    let size = rotate.as_ref().and_then(|rotate| rotate.size.as_ref());
    let bytes_max = file_bytes(size, 100 * MIB, report);
    let keep = rotate.as_ref().map_or(5, |rotate| number(&rotate.keep, 5, (0, 1000), report));
    let to = to.as_ref().and_then(|to| report.accept(to.at, not_empty(to)));
    match to.as_deref() {
        None | Some("stderr") => Some(LogSink::Stderr),
        Some("none") => None,
        Some(path) => {
            let keep = u32::try_from(keep).unwrap_or(5);
            Some(LogSink::File { path: path.into(), bytes_max, keep })
        }
    }
}

fn file_bytes(size: Option<&raw::At<SizeText>>, default: u64, report: &mut Report) -> u64 {
    let Some(field) = size else { return default };
    let bytes = report.accept(field.at, grammar::size(field));
    let (least, most) = FILE_BYTES;
    match bytes {
        Some(bytes) if !(least..=most).contains(&bytes) => {
            let message = format!("{} is out of range", quoted(field));
            report.error(codes::OUT_OF_RANGE, field.at, message, "the range is 4KiB to 1TiB");
            default
        }
        other => other.unwrap_or(default),
    }
}

pub(crate) fn usage(file: &raw::File, report: &mut Report) -> Option<Usage> {
    let usage = file.usage.as_ref()?;
    let path = required(&usage.file, "file", (usage.at, &usage.unreadable), report);
    let rotate = usage.rotate.as_ref();
    let size = rotate.and_then(|rotate| rotate.size.as_ref());
    let bytes_max = file_bytes(size, 256 * MIB, report);
    let age = &rotate.and_then(|rotate| rotate.age.clone());
    let age_us = duration_us(age, DAY_US, (MINUTE_US, 366 * DAY_US), report);
    let every_us = duration_us(&usage.every, MINUTE_US, (1_000_000, 60 * MINUTE_US), report);
    let keys_max = number(&usage.max_keys, 1_000_000, (1, 100_000_000), report);
    Some(Usage {
        file: path?,
        every: Duration::from_micros(every_us),
        fsync: usage.fsync.as_ref().is_some_and(|field| field.value),
        bytes_max,
        age_max: Duration::from_micros(age_us),
        keys_max: usize::try_from(keys_max).unwrap_or(usize::MAX),
    })
}
