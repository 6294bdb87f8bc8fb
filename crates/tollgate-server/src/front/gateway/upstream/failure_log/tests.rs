use super::{FailureLog, REASONS_MAX, REPEAT_AFTER_US, connect_failure_reason};
use rustls::CertificateError::{ExpiredContext, UnknownIssuer};
use rustls::pki_types::UnixTime;
use std::{io, time::Duration};

#[test]
fn a_reason_is_given_once_until_the_server_is_back() {
    let reach = FailureLog::default();
    assert!(!reach.record_success(), "nobody has been told anything");
    assert!(reach.record_failure("refused", 0) && reach.is_failing());
    assert!(!reach.record_failure("refused", REPEAT_AFTER_US * 5), "it is still so");
    assert!(reach.record_failure("reset", REPEAT_AFTER_US * 5), "another reason");
    assert!(reach.record_success() && !reach.is_failing());
    assert!(!reach.record_success(), "once");
    assert!(reach.record_failure("refused", REPEAT_AFTER_US * 6));
}

/// A server that comes and goes a thousand times a second is said to once in a while.
#[test]
fn coming_and_going_fills_no_log() {
    let reach = FailureLog::default();
    let mut said = 0;
    for attempt in 0..10_000 {
        said += usize::from(reach.record_failure("refused", attempt * 1000));
        said += usize::from(reach.record_success());
    }
    assert_eq!(said, 2, "that it is gone and that it is back");
    assert!(reach.record_failure("refused", REPEAT_AFTER_US), "and again after a while");
}

#[test]
fn reasons_are_bounded() {
    let reach = FailureLog::default();
    let said = (0..100).filter(|n| reach.record_failure(&n.to_string(), 0)).count();
    assert_eq!(said, REASONS_MAX);
}

#[test]
fn certificates_are_explained_without_what_changes() {
    let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let expired = ExpiredContext { time: at(20), not_after: at(10) };
    for (cause, expected) in
        [(expired, "its certificate has expired"), (UnknownIssuer, "not of an authority")]
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
