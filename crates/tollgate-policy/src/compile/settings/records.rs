//! `log` and `usage`.

use crate::compile::fields::{duration_us, not_empty, number, required, word};
use crate::diagnostic::{Report, codes, quoted};
use crate::grammar;
use crate::raw::{self, At, Field, LoggedDecisions, SizeText, Text};
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
    Logs { decisions, access }
}

/// Reports files that two parts of the node would write: each would rotate or overwrite what the
/// other wrote.
pub(crate) fn own_files(file: &raw::File, report: &mut Report) {
    let log = file.log.as_ref();
    let decisions = log.and_then(|log| log.decisions.as_ref()?.to.as_ref());
    let access = log.and_then(|log| log.access.as_ref()?.to.as_ref());
    let is_file = |to: &&At<Text>| {
        let to: &str = to;
        !matches!(to, "stderr" | "none")
    };
    let usage = file.usage.as_ref().and_then(|usage| usage.file.as_ref());
    let audit = file.admin.as_ref().and_then(|admin| admin.audit.as_ref()?.file.as_ref());
    let writers = [
        ("log.decisions", decisions.filter(is_file)),
        ("log.access", access.filter(is_file)),
        ("usage", usage),
        ("admin.audit", audit),
    ];
    let mut known: Vec<(&str, PathBuf)> = Vec::new();
    for (writer, path) in writers {
        let Some(path) = path else { continue };
        let normal = normal(path);
        if let Some((other, _)) = known.iter().find(|(_, known)| *known == normal) {
            let message = format!("{} is also the file of `{other}`", quoted(path));
            let help = format!("give `{writer}` a file of its own");
            report.error(codes::REPEATED, path.at, message, help);
        }
        known.push((writer, normal));
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
