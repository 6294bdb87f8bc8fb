use super::*;

/// What a server says, as the connection hears it.
fn heard(line: &str) -> Failure {
    let reply = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
    reply.extract_error().unwrap_err().into()
}

#[test]
fn every_reply_has_its_consequence() {
    use StoreErrorKind::{Rejected, Unreachable};
    let there = || ("10.0.0.7".to_owned(), 7001);
    for (line, kind, then) in [
        ("NOSCRIPT No matching script.", Unreachable, Then::Reload),
        ("READONLY You can't write against a read only replica.", Unreachable, Then::Elsewhere),
        (
            "ERR Error running script (call to f_0): @user_script:9: -READONLY You can't write",
            Unreachable,
            Then::Elsewhere,
        ),
        ("MOVED 3999 10.0.0.7:7001", Rejected, Then::Moved(there().0, 7001)),
        ("ASK 3999 10.0.0.7:7001", Rejected, Then::Ask(there().0, 7001)),
        ("MOVED 3999 :7001", Rejected, Then::Moved(String::new(), 7001)),
        ("MOVED 3999 ::1:7001", Rejected, Then::Moved("::1".into(), 7001)),
        ("MOVED nowhere", Rejected, Then::Keep),
        ("TRYAGAIN Multiple keys request during rehashing of slot", Unreachable, Then::TryAgain),
        ("LOADING Redis is loading the dataset in memory", Unreachable, Then::Keep),
        ("BUSY Redis is busy running a script.", Unreachable, Then::Keep),
        ("CLUSTERDOWN The cluster is down", Unreachable, Then::Keep),
        ("MASTERDOWN Link with MASTER is down", Unreachable, Then::Keep),
        ("NOAUTH Authentication required.", Rejected, Then::Reconnect),
        ("WRONGPASS invalid username-password pair", Rejected, Then::Reconnect),
        ("NOPERM this user has no permissions", Rejected, Then::Refused),
        ("WRONGTYPE Operation against a key holding the wrong kind", Rejected, Then::Refused),
        ("ERR user_script:9: attempt to compare nil with number", Rejected, Then::Refused),
        (
            "ERR AUTH <password> called without any password configured for the default user.",
            Rejected,
            Then::Reconnect,
        ),
        ("OOM command not allowed when used memory > 'maxmemory'.", Rejected, Then::Keep),
        ("MISCONF Redis is configured to save RDB snapshots", Rejected, Then::Keep),
        ("ERR max number of clients reached", Unreachable, Then::Reconnect),
    ] {
        let failure = heard(line);
        assert_eq!((failure.error.kind, failure.then), (kind, then), "{line}");
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
