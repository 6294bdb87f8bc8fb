//! What a lifetime does to one key: the table of `docs/leases.md`.

use super::key::{Key, KeyPlan, Outcome};
use super::table::{LIFETIMES_MS, percent};
use std::fmt::Write;
use tollgate_core::algorithm::{FixedWindow, Gcra};
use tollgate_core::{LimitParams, Rate};
use tollgate_picture::axis::format_duration;
use tollgate_store::lease::LeaseTerms;

/// A thousand a second, ten nodes, and a fifth more requests than that.
const LIMIT: u64 = 10_000;
const SECONDS: u64 = 10;
const NODES: usize = 10;
const PER_1000_S: u64 = 1_200_000;
/// One and a half probes and the deadline.
const GRACE_MS: u64 = 775;

fn run(params: LimitParams, lifetime_ms: u64) -> Outcome {
    let (lifetime_us, grace_us) = (lifetime_ms * 1_000, (lifetime_ms + GRACE_MS) * 1_000);
    let terms = LeaseTerms::for_limit(&params, lifetime_us, 100, grace_us);
    let plan = KeyPlan { params, terms, nodes: NODES, per_1000_s: PER_1000_S, windows: (8, 3) };
    Key::run(plan, lifetime_ms)
}

/// The table.
pub(super) fn markdown() -> String {
    let rate = Rate::try_new(LIMIT, SECONDS * 1_000_000).unwrap();
    let mut text = String::from(
        "| lifetime | calls for 1,000 requests | requests that waited for one | a node held at most | under-admission, window and bucket | off a bucket's burst | a lowered limit is in force within | quiet at least |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for lifetime_ms in LIFETIMES_MS {
        let window = run(LimitParams::FixedWindow(FixedWindow::new(rate)), lifetime_ms);
        let bucket = run(LimitParams::Gcra(Gcra::try_new(rate, None).unwrap()), lifetime_ms);
        let calls = window.calls.iter().sum::<u64>() * 10_000 / window.requests;
        let under = |one: &Outcome| one.ideal.saturating_sub(one.admitted) * 1_000_000 / one.ideal;
        let waited = (window.direct + window.waited) * 10_000 / window.requests;
        let _ = writeln!(
            text,
            "| {} | {}.{} | {}.{} | {} | {} | {} | {} | {} ms |",
            format_duration(lifetime_ms * 1_000),
            calls / 10,
            calls % 10,
            waited / 10,
            waited % 10,
            window.held_most,
            percent(under(&window).max(under(&bucket)), 2),
            LIMIT * lifetime_ms / SECONDS / 1_000,
            format_duration(lifetime_ms * 1_000),
            lifetime_ms + GRACE_MS,
        );
    }
    text
}
