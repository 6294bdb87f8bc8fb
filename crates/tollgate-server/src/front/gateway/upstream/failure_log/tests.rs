use super::{FailureLog, REASONS_MAX, REPEAT_AFTER_US, connect_failure_reason};
use rustls::CertificateError::{ExpiredContext, UnknownIssuer};
use rustls::pki_types::UnixTime;
use std::{io, time::Duration};

#[test]
fn a_reason_is_given_once_until_the_server_is_back() {
    let log = FailureLog::default();
    assert!(!log.record_success(), "no failure was logged");
    assert!(log.record_failure("refused", 0) && log.is_failing());
    assert!(!log.record_failure("refused", REPEAT_AFTER_US * 5), "it is still so");
    assert!(log.record_failure("reset", REPEAT_AFTER_US * 5), "another reason");
    assert!(log.record_success() && !log.is_failing());
    assert!(!log.record_success(), "once");
    assert!(log.record_failure("refused", REPEAT_AFTER_US * 6));
}

/// A server that fails and recovers a thousand times a second is logged only once in a while.
#[test]
fn coming_and_going_fills_no_log() {
    let log = FailureLog::default();
    let mut said = 0;
    for attempt in 0..10_000 {
        said += usize::from(log.record_failure("refused", attempt * 1000));
        said += usize::from(log.record_success());
    }
    assert_eq!(said, 2, "one line for the failure, one for the recovery");
    assert!(log.record_failure("refused", REPEAT_AFTER_US), "and again after a while");
}

#[test]
fn reasons_are_bounded() {
    let log = FailureLog::default();
    let said = (0..100).filter(|n| log.record_failure(&n.to_string(), 0)).count();
    assert_eq!(said, REASONS_MAX);
}

#[test]
fn certificates_are_explained_without_what_changes() {
    let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let expired = ExpiredContext { time: at(20), not_after: at(10) };
    for (cause, expected) in
        [(expired, "its certificate has expired"), (UnknownIssuer, "no trusted authority")]
    {
        let error = io::Error::other(rustls::Error::InvalidCertificate(cause));
        assert!(
            connect_failure_reason(&error).contains(expected),
            "{}",
            connect_failure_reason(&error)
        );
    }
    assert_eq!(connect_failure_reason(&io::Error::other("as it is")), "as it is");
}
