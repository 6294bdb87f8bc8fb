use super::*;

/// The failure for an error line of a server.
fn heard(line: &str) -> Failure {
    let reply = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
    reply.extract_error().unwrap_err().into()
}

#[test]
fn every_reply_has_its_consequence() {
    use StoreErrorKind::{Rejected, Unreachable};
    let there = || ("10.0.0.7".to_owned(), 7001);
    for (line, kind, then) in [
        ("NOSCRIPT No matching script.", Unreachable, FailureAction::SendScript),
        (
            "READONLY You can't write against a read only replica.",
            Unreachable,
            FailureAction::NotPrimary,
        ),
        (
            "ERR Error running script (call to f_0): @user_script:9: -READONLY You can't write",
            Unreachable,
            FailureAction::NotPrimary,
        ),
        ("MOVED 3999 10.0.0.7:7001", Rejected, FailureAction::Moved(there().0, 7001)),
        ("ASK 3999 10.0.0.7:7001", Rejected, FailureAction::Ask(there().0, 7001)),
        ("MOVED 3999 :7001", Rejected, FailureAction::Moved(String::new(), 7001)),
        ("MOVED 3999 ::1:7001", Rejected, FailureAction::Moved("::1".into(), 7001)),
        ("MOVED nowhere", Rejected, FailureAction::KeepConnection),
        (
            "TRYAGAIN Multiple keys request during rehashing of slot",
            Unreachable,
            FailureAction::TryAgain,
        ),
        (
            "LOADING Redis is loading the dataset in memory",
            Unreachable,
            FailureAction::KeepConnection,
        ),
        ("BUSY Redis is busy running a script.", Unreachable, FailureAction::KeepConnection),
        ("CLUSTERDOWN The cluster is down", Unreachable, FailureAction::KeepConnection),
        ("MASTERDOWN Link with MASTER is down", Unreachable, FailureAction::KeepConnection),
        ("NOAUTH Authentication required.", Rejected, FailureAction::Reconnect),
        ("WRONGPASS invalid username-password pair", Rejected, FailureAction::Reconnect),
        ("NOPERM this user has no permissions", Rejected, FailureAction::CallRefused),
        (
            "WRONGTYPE Operation against a key holding the wrong kind",
            Rejected,
            FailureAction::CallRefused,
        ),
        (
            "ERR user_script:9: attempt to compare nil with number",
            Rejected,
            FailureAction::CallRefused,
        ),
        (
            "ERR AUTH <password> called without any password configured for the default user.",
            Rejected,
            FailureAction::Reconnect,
        ),
        (
            "OOM command not allowed when used memory > 'maxmemory'.",
            Rejected,
            FailureAction::KeepConnection,
        ),
        (
            "MISCONF Redis is configured to save RDB snapshots",
            Rejected,
            FailureAction::KeepConnection,
        ),
        ("ERR max number of clients reached", Unreachable, FailureAction::Reconnect),
    ] {
        let failure = heard(line);
        assert_eq!((failure.error.kind, failure.action), (kind, then), "{line}");
    }
}

#[test]
fn what_the_server_repeats_of_a_call_is_not_passed_on() {
    let failure = heard("ERR unknown command 'EVALSHA', with args beginning with: 'marker-key'");
    assert!(!failure.error.to_string().contains("marker"), "{}", failure.error);
}

#[test]
fn a_right_that_is_missing_is_named_and_nothing_else() {
    for (line, names) in [
        ("NOPERM User tg has no permissions to run the 'evalsha' command", "lacks +evalsha"),
        (
            "NOPERM this user has no permissions to run the 'cluster|slots' command or its subcommand",
            "+cluster|slots",
        ),
        ("NOPERM No permissions to access a key", "keys of this prefix"),
        (
            "NOPERM this user has no permissions to access one of the keys used as arguments",
            "keys of this prefix",
        ),
        ("NOPERM User tg has no permissions to run the 'MARKER marker' command", "lacks a right"),
    ] {
        let text = heard(line).error.to_string();
        assert!(text.contains(names), "{text}");
        assert!(!text.to_lowercase().contains("marker") && !text.contains("tg"), "{text}");
    }
}
