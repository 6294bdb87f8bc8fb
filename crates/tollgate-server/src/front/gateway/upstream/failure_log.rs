//! What is said of a server that cannot be reached: the reason, when that begins and when it ends,
//! and not for each request.

#[cfg(test)]
mod tests;

use rustls::CertificateError::{Expired, ExpiredContext, UnknownIssuer};
use std::{
    io,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
};

/// A reason is not given again for so long, however often the server comes and goes.
const REPEAT_AFTER_US: u64 = 10_000_000;
/// So many reasons are remembered; others are told apart from nothing, and not given.
const REASONS_MAX: usize = 16;

const HEALTHY: u8 = 0;
/// Failing, and nobody has been told this time.
const FAILING: u8 = 1;
const LOGGED: u8 = 2;

/// Whether a server can be reached, as far as the log knows.
#[derive(Debug, Default)]
pub(crate) struct FailureLog {
    state: AtomicU8,
    reasons: Mutex<FailureReasons>,
}

#[derive(Debug, Default)]
struct FailureReasons {
    /// When it failed first after it had been well.
    since_us: u64,
    /// Each reason, and when it was given last.
    logged: Vec<(Box<str>, u64)>,
}

impl FailureLog {
    /// It could not be reached; whether that is news.
    pub(crate) fn record_failure(&self, reason: &str, now_us: u64) -> bool {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        let FailureReasons { since_us, logged } = &mut *reasons;
        if self.state.load(Relaxed) == HEALTHY {
            self.state.store(FAILING, Relaxed);
            *since_us = now_us;
        }
        let is_recent = |at_us: u64| now_us < at_us.saturating_add(REPEAT_AFTER_US);
        match logged.iter_mut().find(|(known, _)| **known == *reason) {
            Some((_, at_us)) if *at_us >= *since_us || is_recent(*at_us) => return false,
            Some((_, at_us)) => *at_us = now_us,
            None => {
                if logged.len() == REASONS_MAX {
                    logged.retain(|(_, at_us)| is_recent(*at_us));
                }
                if logged.len() == REASONS_MAX {
                    return false;
                }
                logged.push((reason.into(), now_us));
            }
        }
        self.state.store(LOGGED, Relaxed);
        true
    }

    /// It was reached; whether somebody was told that it could not be.
    pub(crate) fn record_success(&self) -> bool {
        self.state.load(Relaxed) != HEALTHY && self.state.swap(HEALTHY, Relaxed) == LOGGED
    }

    /// The same for what comes and goes with each request: whether it has not been said for a
    /// while.
    pub(crate) fn record_repeated_failure(&self, reason: &str, now_us: u64) -> bool {
        self.record_success();
        self.record_failure(reason, now_us)
    }

    /// Whether the last attempt failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.state.load(Relaxed) != HEALTHY
    }
}

/// Why a connection could not be made, in words that do not change from one attempt to the next.
pub(crate) fn connect_failure_reason(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. })) => {
            "its certificate has expired".into()
        }
        Some(rustls::Error::InvalidCertificate(UnknownIssuer)) => {
            "its certificate is not of an authority that counts (upstream.tls.ca, or else the system's)".into()
        }
        Some(rustls::Error::InvalidMessage(_)) => format!("it does not speak TLS: {error}"),
        Some(rustls::Error::InvalidCertificate(_)) => {
            error.to_string().replace("invalid peer certificate: ", "")
        }
        _ => error.to_string(),
    }
}
