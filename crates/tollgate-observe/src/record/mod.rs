//! Records of single requests: the decision log, and the access log of the gateway.
//!
//! Lines pass through a bounded queue. If the sink is full or blocked, lines are dropped and
//! counted; no request waits.

mod access_log;
mod decision_log;
mod line;
mod rotating_file;
mod sink;
#[cfg(test)]
mod tests;

pub use access_log::{AccessEntry, AccessLog, PendingAccess};
pub use decision_log::{DecidedKey, DecidedRequest, DecisionLog, RECORDED_HEADERS};

use crate::keys::KeySecrets;
use crate::trace::{self, DecisionContext};
use arc_swap::ArcSwapOption;
use sink::{LineSink, SinkError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tollgate::engine::{Rules, Verdict};
use tollgate_policy::settings::{LogSink, Settings};

/// The logs of a node. A reload replaces them.
#[derive(Debug, Default)]
pub struct Records {
    decisions: ArcSwapOption<DecisionLog>,
    /// Whether a decision log is set. Read for every decision.
    has_decisions: AtomicBool,
    access: ArcSwapOption<AccessLog>,
    has_access: AtomicBool,
    dropped: DroppedLines,
}

/// Lines dropped by full sinks since the start of the process.
#[derive(Clone, Debug, Default)]
struct DroppedLines {
    decisions: Arc<AtomicU64>,
    access: Arc<AtomicU64>,
}

/// Logs that are open but not in use yet.
#[derive(Debug, Default)]
pub struct OpenLogs {
    decisions: Option<Arc<DecisionLog>>,
    access: Option<Arc<AccessLog>>,
}

/// A log could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("{source}; check the path and its rights, or change `{field}`")]
pub struct RecordError {
    /// The field of the file that names the log.
    field: &'static str,
    source: SinkError,
}

impl Records {
    /// Opens the logs that the settings name. Relative paths start in `folder`. A sink already in
    /// use is kept and reopens its file.
    pub fn open(&self, settings: &Settings, folder: &Path) -> Result<OpenLogs, RecordError> {
        let open =
            |used: Option<&LineSink>, wanted: &LogSink, dropped: &Arc<AtomicU64>, field| match used
                .and_then(|used| used.reopened(wanted, folder))
            {
                Some(sink) => Ok(sink),
                None => LineSink::open(wanted, folder, dropped.clone())
                    .map_err(|source| RecordError { field, source }),
            };
        let decisions = settings.logs.decisions.as_ref().map(|wanted| {
            let (used, dropped) = (self.decisions.load_full(), &self.dropped.decisions);
            let used = used.as_deref().map(DecisionLog::sink);
            let sink = open(used, &wanted.sink, dropped, "log.decisions.to")?;
            Ok(Arc::new(DecisionLog::new(wanted, sink)))
        });
        let access = settings.logs.access.as_ref().map(|wanted| {
            let (used, dropped) = (self.access.load_full(), &self.dropped.access);
            let used = used.as_deref().map(AccessLog::sink);
            let sink = open(used, &wanted.sink, dropped, "log.access.to")?;
            Ok(Arc::new(AccessLog::new(wanted, sink)))
        });
        Ok(OpenLogs { decisions: decisions.transpose()?, access: access.transpose()? })
    }

    /// Replaces the logs.
    pub fn set(&self, logs: OpenLogs) {
        self.has_decisions.store(logs.decisions.is_some(), Relaxed);
        self.has_access.store(logs.access.is_some(), Relaxed);
        self.decisions.store(logs.decisions);
        self.access.store(logs.access);
    }

    /// Whether a decision log is set.
    #[inline]
    pub fn logs_decisions(&self) -> bool {
        self.has_decisions.load(Relaxed)
    }

    /// The decision log, if it logs decisions with this result.
    fn decisions(&self, allowed: bool) -> Option<Arc<DecisionLog>> {
        self.decisions.load_full().filter(|log| log.wants(allowed))
    }

    /// Records a decision: a span, and a line in the decision log.
    #[cold]
    pub fn record(
        &self,
        keys: &KeySecrets,
        rules: &Rules,
        decided: &DecidedRequest<'_>,
        verdict: &Verdict<'_>,
    ) {
        let DecidedRequest { front, parent, start_us, end_us, .. } = *decided;
        if trace::enabled() {
            let key_hash = match decided.key {
                DecidedKey::Facts(facts) => trace::key_hash(facts, verdict),
                DecidedKey::Descriptors(key) | DecidedKey::Limit { key, .. } => {
                    trace::bytes_hash(key)
                }
            };
            let context = DecisionContext { front, parent, key_hash, start_us, end_us };
            trace::record_decision(&context, verdict);
        }
        if !decided.is_peek
            && let Some(log) = self.decisions(verdict.allowed)
        {
            log.write(keys, rules, decided, verdict);
        }
    }

    /// The access log.
    #[inline]
    pub fn access(&self) -> Option<Arc<AccessLog>> {
        if self.has_access.load(Relaxed) { self.access.load_full() } else { None }
    }

    /// Lines of the decision log and the access log dropped by full sinks.
    pub fn dropped_lines(&self) -> [u64; 2] {
        let DroppedLines { decisions, access } = &self.dropped;
        [decisions.load(Relaxed), access.load(Relaxed)]
    }

    /// Waits until all lines are written, for at most `timeout` per log.
    pub fn flush(&self, timeout: Duration) {
        if let Some(log) = self.decisions.load_full() {
            log.sink().flush(timeout);
        }
        if let Some(log) = self.access.load_full() {
            log.sink().flush(timeout);
        }
    }
}
