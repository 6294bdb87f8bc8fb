use crate::fixture::{NOW_US, check, facts, gate};
use crate::now;
use tollgate::engine::Source;

const SECOND: u64 = 1_000_000;
const LIMITS: &str = concat!(
    "  - {name: user, match: {path: /never}, key: [user], rate: 5/min, algorithm: gcra}\n",
    "  - {name: org, key: [org], rate: 5/min}\n",
    "  - {name: login, key: [user], rate: 1/min, algorithm: gcra, tiers: {slow: 1/h}, penalty: {after: 1, block: 10s, max: 10s}}\n",
);

#[test]
fn every_limit_of_the_key_is_shown_whatever_it_matches() {
    let desk = gate(LIMITS);
    check(&desk, &[("user", "a")], 1);
    check(&desk, &[("user", "a")], 1);
    let facts = facts(&desk, &[("user", "a")]);
    let inspected = now(desk.gate.inspect(&desk.rules, NOW_US + SECOND, &facts, None)).unwrap();
    let shown: Vec<_> = inspected
        .iter()
        .map(|one| (&*one.row.limit.name, one.row.outcome.remaining, one.blocked_until_us))
        .collect();
    assert_eq!(shown, [("user", 5, None), ("login", 0, Some(NOW_US + 10 * SECOND))]);
    let one = now(desk.gate.inspect(&desk.rules, NOW_US, &facts, Some("user"))).unwrap();
    assert_eq!(one.len(), 1);
}

#[test]
fn a_key_is_reset_in_every_tier() {
    let desk = gate(LIMITS);
    for plan in ["free", "slow"] {
        check(&desk, &[("user", "a"), ("plan", plan)], 1);
        assert!(!check(&desk, &[("user", "a"), ("plan", plan)], 1).allowed);
    }
    let facts = facts(&desk, &[("user", "a")]);
    assert_eq!(now(desk.gate.reset(&desk.rules, &facts, Some("login"))).unwrap(), ["login"]);
    for plan in ["free", "slow"] {
        assert!(check(&desk, &[("user", "a"), ("plan", plan)], 1).allowed);
    }
}

#[test]
fn a_key_is_blocked_in_every_tier_until_told_otherwise() {
    let desk = gate(LIMITS);
    let facts = facts(&desk, &[("user", "a")]);
    let block = |until_us| {
        now(desk.gate.block(&desk.rules, NOW_US, &facts, Some("login"), until_us)).unwrap()
    };
    assert_eq!(block(Some(NOW_US + SECOND)), ["login"]);
    for plan in ["free", "slow"] {
        let verdict = check(&desk, &[("user", "a"), ("plan", plan)], 1);
        assert_eq!((verdict.source, verdict.retry_after_us), (Source::Blocked, Some(SECOND)));
    }
    assert!(check(&desk, &[("user", "b")], 1).allowed);
    block(None);
    assert!(check(&desk, &[("user", "a")], 1).allowed);
}

#[test]
fn what_was_taken_before_a_reset_is_not_given_back_after_it() {
    use tollgate::engine::{ReservationEnd, Work};
    for algorithm in ["fixed-window", "sliding-window", "sliding-log", "gcra", "token-bucket"] {
        let limits = format!("  - {{name: l, key: [user], rate: 10/h, algorithm: {algorithm}}}\n");
        let desk = gate(&limits);
        let facts = facts(&desk, &[("user", "a")]);
        let mut work = Work::default();
        let (gate, rules) = (&desk.gate, &desk.rules);
        gate.reserve(rules, NOW_US, "r", &facts, 6, None, &mut work).now().unwrap();
        now(gate.reset(rules, &facts, None)).unwrap();
        assert!(check(&desk, &[("user", "a")], 7).allowed);
        gate.end(NOW_US, "r", ReservationEnd::Cancel).now().unwrap();
        let left = gate.peek(rules, NOW_US, &facts, 1, &mut work).now().rows[0].outcome.remaining;
        assert_eq!(left, 3, "{algorithm}");
    }
}
