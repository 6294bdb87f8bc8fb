//! Describes the arithmetic of a limit in words.

use tollgate::engine::{ExplainedDecision, Source};
use tollgate_core::{Algorithm, LimitParams, LimitState, Outcome};
use tollgate_policy::facts::Unverified;
use tollgate_policy::limit::OnStoreFailure;

const SECOND_US: u64 = 1_000_000;

/// The reason of a decision, in one sentence: the counts before the request, and its cost.
pub(super) fn reason(
    decision: &ExplainedDecision<'_>,
    unverified: Option<Unverified>,
    now_us: u64,
) -> String {
    let (row, outcome) = (&decision.row, &decision.row.outcome);
    if row.unverified {
        let why = unverified.map_or("", Unverified::as_str);
        return format!("the token does not verify ({why}), and on_invalid is refuse");
    }
    if decision.is_key_missing {
        return "a part of the key is missing, and on_missing is refuse".to_owned();
    }
    if let Some(failed) = without_store(row.source, row.limit.on_store_failure) {
        return failed;
    }
    if row.blocked {
        // The later of the block's end and the limit's own wait.
        let wait = outcome.retry_after_us.map(duration);
        return match wait {
            Some(wait) => format!("the key is blocked; the request fits in {wait}"),
            None => "the key is blocked; the request never fits".to_owned(),
        };
    }
    let mut text = counts(decision, now_us);
    if decision.cost != 1 {
        text.push_str(&format!("; the request costs {}", decision.cost));
    }
    match outcome.retry_after_us {
        _ if outcome.admitted && outcome.delay_us > 0 => {
            text.push_str(&format!("; it waits for {}", duration(outcome.delay_us)));
        }
        _ if outcome.admitted => {}
        Some(wait_us) => text.push_str(&format!("; it fits in {}", duration(wait_us))),
        None => text.push_str("; it never fits"),
    }
    text
}

/// The effect of the failure policy, if the store failed.
fn without_store(source: Source, policy: OnStoreFailure) -> Option<String> {
    let local = match policy {
        OnStoreFailure::Local { nodes } => format!("a share of 1/{nodes}"),
        _ => "the local rate".to_owned(),
    };
    match source {
        Source::FailOpen => Some("the store failed, and the limit fails open".to_owned()),
        Source::FailClosed => Some("the store failed, and the limit fails closed".to_owned()),
        Source::LocalFallback => Some(format!("the store failed, and this node enforces {local}")),
        _ => None,
    }
}

/// The counts of the key before the request.
fn counts(decision: &ExplainedDecision<'_>, now_us: u64) -> String {
    let (outcome, used) = (&decision.row.outcome, decision.used);
    let (limit, left) = (outcome.limit, outcome.remaining);
    match (&decision.params, decision.state.as_ref()) {
        (LimitParams::SlidingWindow(window), Some(LimitState::SlidingWindow(state))) => {
            let [previous, still, current] = window.counted(state, now_us);
            match previous {
                0 => format!("{current} of {limit} in this window: {left} left"),
                _ => format!(
                    "{current} of {limit} in this window, {still} of the {previous} before still count: {left} left"
                ),
            }
        }
        (LimitParams::SlidingWindow(_), _) => format!("{used} of {limit} count: {left} left"),
        (LimitParams::FixedWindow(_) | LimitParams::CalendarWindow(_), _) => {
            let ends = match used {
                0 => String::new(),
                _ => format!("; the window ends in {}", duration(outcome.reset_after_us)),
            };
            format!("{used} of {limit} in this window: {left} left{ends}")
        }
        (LimitParams::SlidingLog(log), _) => {
            let window = duration(log.window_us().unwrap_or(0));
            format!("{used} of {limit} in the last {window}: {left} left")
        }
        (LimitParams::Concurrency(_), _) => format!("{used} of {limit} slots held: {left} left"),
        (LimitParams::LeakyBucket(_), _) => {
            format!("{used} of {limit} places taken: {left} left{}", next(outcome, "place"))
        }
        _ => format!("{left} of {limit} tokens left{}", next(outcome, "token")),
    }
}

/// The time until a bucket has one more unit.
fn next(outcome: &Outcome, unit: &str) -> String {
    match outcome.more_after_us {
        Some(after_us) => format!(", one {unit} more in {}", duration(after_us)),
        None => String::new(),
    }
}

/// A duration in words: the two largest units, rounded up to a millisecond.
pub(super) fn duration(us: u64) -> String {
    let ms = us.div_ceil(1_000);
    let seconds = us.div_ceil(SECOND_US);
    let parts = |units: [(u64, &str); 2]| {
        let [(first, one), (second, other)] = units;
        if second == 0 {
            format!("{first} {one}")
        } else {
            format!("{first} {one} {second} {other}")
        }
    };
    match us {
        0..SECOND_US => format!("{ms} ms"),
        _ if us < 60 * SECOND_US && ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
        _ if us < 60 * SECOND_US => {
            let fraction = format!("{:03}", ms % 1_000);
            format!("{}.{} s", ms / 1_000, fraction.trim_end_matches('0'))
        }
        _ if us < 3_600 * SECOND_US => parts([(seconds / 60, "min"), (seconds % 60, "s")]),
        _ if us < 86_400 * SECOND_US => {
            parts([(seconds / 3_600, "h"), (seconds % 3_600 / 60, "min")])
        }
        _ => parts([(seconds / 86_400, "d"), (seconds % 86_400 / 3_600, "h")]),
    }
}
