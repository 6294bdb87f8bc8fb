//! Decides which failures of an upstream to log: each reason when it begins, not for every request.

#[cfg(test)]
mod tests;

use rustls::CertificateError::{Expired, ExpiredContext, UnknownIssuer};
use std::sync::{Mutex, MutexGuard};
use std::{io, mem};

/// The shortest interval between two logs of a reason, however often the upstream recovers.
const REPEAT_AFTER_US: u64 = 10_000_000;
/// Limit of remembered reasons. Further ones are not logged.
const REASONS_MAX: usize = 16;

/// The failures of an upstream that were logged.
#[derive(Debug, Default)]
pub(super) struct FailureLog(Mutex<FailureState>);

#[derive(Debug, Default)]
struct FailureState {
    /// The time of the first failure since the last success.
    failing_since_us: Option<u64>,
    /// Whether a failure was logged since then.
    is_logged: bool,
    /// Each reason, and the time it was last logged.
    reasons: Vec<(Box<str>, u64)>,
}

impl FailureLog {
    fn state(&self) -> MutexGuard<'_, FailureState> {
        tollgate_net::lock(&self.0)
    }

    /// Records a failure. Returns whether to log it.
    pub(super) fn record_failure(&self, reason: &str, now_us: u64) -> bool {
        let mut state = self.state();
        let FailureState { failing_since_us, is_logged, reasons } = &mut *state;
        let since_us = *failing_since_us.get_or_insert(now_us);
        let is_recent = |at_us: u64| now_us < at_us.saturating_add(REPEAT_AFTER_US);
        match reasons.iter_mut().find(|(known, _)| **known == *reason) {
            Some((_, at_us)) if *at_us >= since_us || is_recent(*at_us) => return false,
            Some((_, at_us)) => *at_us = now_us,
            None => {
                if reasons.len() == REASONS_MAX {
                    reasons.retain(|(_, at_us)| is_recent(*at_us));
                }
                if reasons.len() == REASONS_MAX {
                    return false;
                }
                reasons.push((reason.into(), now_us));
            }
        }
        *is_logged = true;
        true
    }

    /// Records a success. Returns whether a failure was logged before.
    pub(super) fn record_success(&self) -> bool {
        let mut state = self.state();
        state.failing_since_us = None;
        mem::take(&mut state.is_logged)
    }

    pub(super) fn is_failing(&self) -> bool {
        self.state().failing_since_us.is_some()
    }
}

/// The reason of a failed connection attempt. The text is equal for each attempt.
pub(super) fn connect_failure_reason(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. })) => {
            "its certificate has expired".into()
        }
        Some(rustls::Error::InvalidCertificate(UnknownIssuer)) => {
            "no trusted authority issued its certificate (upstream.tls.ca, or else the system's)"
                .into()
        }
        Some(rustls::Error::InvalidMessage(_)) => format!("it does not speak TLS: {error}"),
        Some(rustls::Error::InvalidCertificate(_)) => {
            error.to_string().replace("invalid peer certificate: ", "")
        }
        _ => error.to_string(),
    }
}
