//! Every row of the table of faults, in a short form that checks counts and no times. `cargo xtask
//! faults` runs the full form.

use std::path::PathBuf;
use tollgate_faults::scenario::{self, ROWS};
use tollgate_faults::trial::Context;

fn run(name: &str) {
    let row = scenario::find(name).unwrap_or_else(|| panic!("there is no row {name}"));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_tollgate"));
    let ended = (row.run)(&Context { program, is_full: false });
    let broken: Vec<_> =
        ended.checks.iter().filter(|check| !check.held && !check.is_timed).collect();
    assert!(broken.is_empty(), "{name}: {broken:#?}\n{:#?}", ended.figures);
    assert!(!ended.checks.is_empty());
}

/// A test for each row, named after it, and the list of rows with a test.
macro_rules! rows {
    ($($test:ident = $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                run($name);
            }
        )*
        const TESTED: &[&str] = &[$($name),*];
    };
}

rows! {
    gone = "gone",
    forgetful = "forgetful",
    stopped = "stopped",
    evicting = "evicting",
    full = "full",
    credentials = "credentials",
    scripts_wiped = "scripts-wiped",
    neighbour = "neighbour",
    comes_back = "return",
    clock_leap = "clock-leap",
    clock_behind = "clock-behind",
    slow = "slow",
    slow_some = "slow-some",
    connect_hangs = "connect-hangs",
    replies_cut = "replies-cut",
    requests_cut = "requests-cut",
    reset = "reset",
    sliced = "sliced",
    big_reply = "big-reply",
    sentinel = "sentinel",
    sentinel_planned = "sentinel-planned",
    cluster_killed = "cluster-killed",
    cluster_planned = "cluster-planned",
    reshard = "reshard",
    majority_lost = "majority-lost",
    herd = "herd",
    tiny = "tiny",
    rolling_restart = "rolling-restart",
    reload = "reload",
    log_unread = "log-unread",
    policy_cut = "policy-cut",
    resp_silent = "resp-silent",
    lease_killed = "lease-killed",
    lease_frozen = "lease-frozen",
    lease_rolling_restart = "lease-rolling-restart",
    lease_gone = "lease-gone",
    lease_fresh = "lease-fresh",
    lease_wiped = "lease-wiped",
    lease_paused = "lease-paused",
    lease_replies_lost = "lease-replies-lost",
    lease_replies_cut = "lease-replies-cut",
    lease_slow = "lease-slow",
    lease_sentinel = "lease-sentinel",
    lease_cluster_killed = "lease-cluster-killed",
    lease_cluster_planned = "lease-cluster-planned",
    lease_reshard = "lease-reshard",
    lease_skew = "lease-skew",
    lease_herd = "lease-herd",
    lease_tiny = "lease-tiny",
    lease_halved = "lease-halved",
}

#[test]
fn every_row_has_a_test() {
    let rows: Vec<_> = ROWS.iter().map(|row| row.name).collect();
    assert_eq!(rows, TESTED);
}
