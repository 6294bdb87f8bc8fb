use super::{QUIET_US, REASONS_MAX, Reach, reason};
use rustls::CertificateError::{ExpiredContext, UnknownIssuer};
use rustls::pki_types::UnixTime;
use std::{io, time::Duration};

#[test]
fn a_reason_is_given_once_until_the_server_is_back() {
    let reach = Reach::default();
    assert!(!reach.succeeded(), "nobody has been told anything");
    assert!(reach.failed("refused", 0) && reach.is_failing());
    assert!(!reach.failed("refused", QUIET_US * 5), "it is still so");
    assert!(reach.failed("reset", QUIET_US * 5), "another reason");
    assert!(reach.succeeded() && !reach.is_failing());
    assert!(!reach.succeeded(), "once");
    assert!(reach.failed("refused", QUIET_US * 6));
}

/// A server that comes and goes a thousand times a second is said to once in a while.
#[test]
fn coming_and_going_fills_no_log() {
    let reach = Reach::default();
    let mut said = 0;
    for attempt in 0..10_000 {
        said += usize::from(reach.failed("refused", attempt * 1000));
        said += usize::from(reach.succeeded());
    }
    assert_eq!(said, 2, "that it is gone and that it is back");
    assert!(reach.failed("refused", QUIET_US), "and again after a while");
}

#[test]
fn reasons_are_bounded() {
    let reach = Reach::default();
    let said = (0..100).filter(|n| reach.failed(&n.to_string(), 0)).count();
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
        assert!(reason(&error).contains(expected), "{}", reason(&error));
    }
    assert_eq!(reason(&io::Error::other("as it is")), "as it is");
}
