//! `tollgate check --probe`: connects to the store of a file and reports its state.

use serde_json::{Value, json};
use std::path::Path;
use tollgate_policy::Compiled;
use tollgate_server::storage::{self, ProbeError, ServerReport};
use tollgate_store::StoreErrorKind;

/// The largest clock difference without a warning. A larger one makes waits wrong.
const CLOCK_US_MAX: u64 = 1_000_000;

/// The report on one file's store.
pub(super) struct ProbeReport {
    file: String,
    /// `None` for the memory store.
    report: Option<ServerReport>,
    pub(super) errors: Vec<Finding>,
    pub(super) warnings: Vec<Finding>,
}

/// A problem, and its fix.
type Finding = (String, &'static str);

impl ProbeReport {
    /// Connects to the store like `serve`.
    pub(super) fn new(path: &Path, compiled: &Compiled) -> Self {
        let beside = path.parent().unwrap_or(Path::new(""));
        let limits = compiled.limits.iter().map(|(limit, _)| limit);
        let variable = |name: &str| std::env::var_os(name);
        let probed = storage::probe(&compiled.settings, limits, beside, variable);
        let (file, errors, warnings) = (path.display().to_string(), Vec::new(), Vec::new());
        let mut found = Self { file, report: None, errors, warnings };
        match probed {
            Ok(report) => {
                report.iter().for_each(|report| found.judge(report));
                found.report = report;
            }
            Err(error) => found.errors.push((error.to_string(), help(&error))),
        }
        found
    }

    fn judge(&mut self, report: &ServerReport) {
        if !report.keeps_counts() {
            let policy = report.eviction.as_deref().unwrap_or_default();
            let message = format!(
                "the store forgets counts when its memory is full (maxmemory-policy {policy})"
            );
            let help =
                "set maxmemory-policy to noeviction; every key has a time to live of its own";
            self.warnings.push((message, help));
        }
        if report.clock_ahead_us.unsigned_abs() > CLOCK_US_MAX {
            let message = format!("the store's clock is off: {}", clock(report.clock_ahead_us));
            self.warnings.push((message, "synchronise the clocks of both machines"));
        }
        let (optional, needed): (Vec<_>, Vec<_>) =
            report.missing.iter().partition(|name| name.split(' ').next() == Some("INFO"));
        for name in needed {
            let message = if name.starts_with('~') {
                format!("the store's user may not use the keys {name}")
            } else {
                format!("the store refuses the command {name}")
            };
            let help = match name.split_once(" (") {
                Some((_, "READONLY)")) => REPLICA,
                Some((_, "WRONGTYPE)")) => NO_HASH,
                Some(_) => "docs/operations.md says what each failure does",
                None => RIGHTS,
            };
            self.errors.push((message, help));
        }
        if !optional.is_empty() {
            let message = "the store refuses the command INFO, so version and eviction are unknown";
            self.warnings.push((message.into(), "allow +info, if you want to be warned"));
        }
    }

    /// The report as lines.
    pub(super) fn text(&self) -> String {
        let file = &self.file;
        let unknown = |value: &Option<Box<str>>| value.as_deref().unwrap_or("unknown").to_owned();
        let mut lines = Vec::new();
        if let Some(report) = &self.report {
            let permissions = match report.missing.len() {
                0 => "all that are needed".to_owned(),
                _ => format!("missing {}", report.missing.join(", ")),
            };
            lines.extend([
                format!("version: {}", unknown(&report.version)),
                format!("mode: {}", unknown(&report.mode)),
                format!("latency: {} us", report.latency_us),
                format!("eviction: {}", unknown(&report.eviction)),
                format!("clock: {}", clock(report.clock_ahead_us)),
                format!("permissions: {permissions}"),
            ]);
            if report.mode.as_deref() == Some("cluster") {
                lines.push(match &report.by_slot[..] {
                    [] => "batches: one call decides for all slots of a primary".to_owned(),
                    some => format!(
                        "batches: one call decides for one slot at {}; faster with Redis 7.0 or Valkey, and +eval_ro",
                        some.join(", ")
                    ),
                });
            }
        } else if self.errors.is_empty() {
            lines.push("in the process itself, so there is nothing to probe".to_owned());
        }
        let lines = lines.iter().map(|line| format!("{file}: store: {line}\n"));
        let finding = |severity: &'static str| {
            move |(message, help): &Finding| {
                format!("{file}: {severity}: {message}\nhelp: {help}\n")
            }
        };
        let errors = self.errors.iter().map(finding("error"));
        lines.chain(errors).chain(self.warnings.iter().map(finding("warning"))).collect()
    }

    /// The report as rows of the JSON array.
    pub(super) fn rows(&self) -> Vec<Value> {
        let store = self.report.as_ref().map(|report| {
            json!({
                "version": report.version,
                "mode": report.mode,
                "latency_us": report.latency_us,
                "eviction": report.eviction,
                "memory_bytes_max": report.memory_bytes_max,
                "clock_ahead_us": report.clock_ahead_us,
                "missing": report.missing,
                "by_slot": report.by_slot,
            })
        });
        let row = json!({"file": self.file, "severity": "info", "store": store});
        let findings = [("error", &self.errors), ("warning", &self.warnings)];
        let findings = findings.into_iter().flat_map(|(severity, all)| {
            let row = move |(message, help): &Finding| {
                json!({"file": self.file, "severity": severity, "message": message, "help": help})
            };
            all.iter().map(row)
        });
        std::iter::once(row).chain(findings).collect()
    }
}

const REPLICA: &str =
    "it is a replica: name the primary, or its sentinels in `store.redis.sentinel`";
const NO_HASH: &str =
    "the key of `tiers.redis` holds another type than a hash: `redis-cli TYPE` says which";
const RIGHTS: &str = "docs/operations.md lists the permissions that a node needs";

/// The fix for a store that did not respond.
fn help(error: &ProbeError) -> &'static str {
    let ProbeError::Store(error) = error else { return "correct `store` in the file" };
    match error.kind {
        _ if error.detail.contains("replica") => REPLICA,
        _ if error.detail.contains("NOPERM") => RIGHTS,
        StoreErrorKind::Rejected => {
            "check `username` and `password`, and that it is Redis or Valkey"
        }
        StoreErrorKind::Timeout => {
            "it may be busy, further away than `deadline`, or speak TLS where the file does not, or the other way round"
        }
        _ => "check that it runs, its address and the credentials in `store`",
    }
}

fn clock(ahead_us: i64) -> String {
    let way = if ahead_us < 0 { "behind" } else { "ahead" };
    format!("{} us {way}", ahead_us.unsigned_abs())
}
