use crate::faulty_store::Faulty;
use crate::fixture::{NOW_US, rows, setup};
use crate::now;
use tollgate::engine::{Gate, GateBuffers, ReservationEnd, ReservationError, Source, Verdict};
use tollgate_store::StoreErrorKind;

/// A gate whose store fails.
fn down(limits: &str) -> Gate<Faulty> {
    let gate = Gate::new(setup(limits), Faulty::default()).unwrap();
    gate.store().set_down(true);
    gate
}

/// Checks user `a`, and calls `look` with the verdict.
fn check<T>(gate: &Gate<Faulty>, look: impl FnOnce(&Verdict<'_>) -> T) -> T {
    check_cost(gate, 1, look)
}

fn check_cost<T>(gate: &Gate<Faulty>, cost: u64, look: impl FnOnce(&Verdict<'_>) -> T) -> T {
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    look(&now(gate.check(&rules, NOW_US, &facts, cost, &mut GateBuffers::default())))
}

#[test]
fn open_admits_without_bound_and_says_so() {
    let gate = down("  - {name: l, key: [user], rate: 1/min}\n");
    for _ in 0..3 {
        check(&gate, |verdict| {
            assert_eq!((verdict.allowed, verdict.source), (true, Source::FailOpen));
            assert_eq!(rows(verdict), [("l", true, 1)]);
        });
    }
    assert_eq!((gate.counts()[0].1.fail_open, gate.counts()[0].1.admitted), (3, 0));
    gate.store().set_down(false);
    check(&gate, |verdict| assert_eq!((verdict.allowed, verdict.source), (true, Source::Store)));
    check(&gate, |verdict| assert!(!verdict.allowed, "only the second was counted"));
}

#[test]
fn closed_refuses_and_may_be_asked_again_in_a_second() {
    let gate = down("  - {name: l, key: [user], rate: 1/min, on_store_failure: closed}\n");
    check(&gate, |verdict| {
        assert_eq!((verdict.allowed, verdict.source), (false, Source::FailClosed));
        assert_eq!(verdict.retry_after_us, Some(1_000_000));
    });
    assert_eq!((gate.counts()[0].1.fail_closed, gate.counts()[0].1.refused), (1, 0));
}

/// A request of cost 0 consumes nothing, so no failure policy refuses it.
#[test]
fn cost_zero_is_admitted_without_the_store() {
    for (policy, source) in [
        ("open", Source::FailOpen),
        ("closed", Source::FailOpen),
        ("{local: {nodes: 3}}", Source::LocalFallback),
    ] {
        let limit =
            format!("  - {{name: l, key: [user], rate: 2/h, on_store_failure: {policy}}}\n");
        let gate = down(&limit);
        check_cost(&gate, 0, |verdict| {
            assert_eq!((verdict.allowed, verdict.source), (true, source), "{policy}");
            assert_eq!((verdict.rows[0].source, verdict.retry_after_us), (source, Some(0)));
        });
        let counts = gate.counts()[0].1;
        assert_eq!(
            (counts.fail_open, counts.fail_closed),
            (u64::from(source == Source::FailOpen), 0)
        );
        let rules = gate.rules();
        let mut facts = rules.facts(Default::default());
        facts.set("user", "a").unwrap();
        let mut buffers = GateBuffers::default();
        let reserved = now(gate.reserve(&rules, NOW_US, "r", &facts, 0, None, &mut buffers));
        assert!(reserved.unwrap().0.allowed, "{policy}");
    }
}

/// The local share is charged although the closed limit could not decide, since that charge is
/// zero.
#[test]
fn a_limit_without_cost_does_not_close_the_others() {
    let gate = down(concat!(
        "  - {name: share, key: [user], rate: 2/h, algorithm: fixed-window, on_store_failure: local}\n",
        "  - {name: free, key: [user], rate: 9/h, cost: 0, on_store_failure: closed}\n",
    ));
    check(&gate, |verdict| {
        assert_eq!(rows(verdict), [("share", true, 1), ("free", true, 9)]);
        assert_eq!((verdict.allowed, verdict.source), (true, Source::FailOpen));
    });
}

#[test]
fn local_enforces_this_nodes_share() {
    let gate = down(
        "  - {name: l, key: [user], rate: 7/min, algorithm: fixed-window, on_store_failure: {local: {nodes: 3}}}\n",
    );
    for remaining in [1, 0] {
        check(&gate, |verdict| {
            assert_eq!((verdict.allowed, verdict.source), (true, Source::LocalFallback));
            assert_eq!(rows(verdict), [("l", true, remaining)]);
        });
    }
    check(&gate, |verdict| {
        assert_eq!((verdict.allowed, verdict.source), (false, Source::LocalFallback));
    });
}

#[test]
fn a_share_of_nothing_refuses() {
    let gate =
        down("  - {name: l, key: [user], rate: 2/min, on_store_failure: {local: {nodes: 3}}}\n");
    check(&gate, |verdict| assert!(!verdict.allowed));
}

#[test]
fn a_share_is_not_consumed_when_another_limit_refuses() {
    let gate = down(concat!(
        "  - {name: share, key: [user], rate: 1/min, on_store_failure: local}\n",
        "  - {name: shut, key: [user], rate: 9/min, on_store_failure: closed}\n",
    ));
    for _ in 0..2 {
        check(&gate, |verdict| {
            assert_eq!(rows(verdict), [("share", true, 1), ("shut", false, 0)]);
            assert_eq!(verdict.source, Source::FailClosed);
        });
    }
}

#[test]
fn a_limit_that_fails_closed_names_the_source_of_the_refusal() {
    for order in [[0, 1], [1, 0]] {
        let limits = [
            "  - {name: share, key: [user], rate: 2/min, on_store_failure: {local: {nodes: 3}}}\n",
            "  - {name: shut, key: [user], rate: 9/min, on_store_failure: closed}\n",
        ];
        let gate = down(&order.map(|n| limits[n]).concat());
        check(&gate, |verdict| {
            assert!(verdict.rows.iter().all(|row| row.refuses()));
            assert_eq!((verdict.allowed, verdict.source), (false, Source::FailClosed));
        });
    }
}

#[test]
fn a_shadow_limit_never_refuses_whatever_it_says_about_failures() {
    let gate =
        down("  - {name: l, key: [user], rate: 1/min, mode: shadow, on_store_failure: closed}\n");
    check(&gate, |verdict| assert!(verdict.allowed));
}

#[test]
fn a_missing_attribute_still_refuses_and_no_wait_helps() {
    for policy in ["open", "closed", "local"] {
        let gate = down(&format!(
            "  - {{name: l, key: [org], rate: 1/min, on_missing: refuse, on_store_failure: {policy}}}\n"
        ));
        check(&gate, |verdict| {
            assert_eq!((verdict.allowed, verdict.retry_after_us), (false, None), "{policy}");
        });
    }
}

#[test]
fn a_reservation_outlives_a_failure_and_can_be_settled_afterwards() {
    let gate = down("  - {name: l, key: [user], rate: 5/min, algorithm: fixed-window}\n");
    gate.store().set_down(false);
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", "a").unwrap();
    let reserve = |id| {
        now(gate.reserve(&rules, NOW_US, id, &facts, 4, None, &mut GateBuffers::default())).unwrap()
    };
    assert!(reserve("before").1.is_some());
    gate.store().set_down(true);
    let refused = now(gate.end(NOW_US, "before", ReservationEnd::Cancel)).unwrap_err();
    assert_eq!(refused, ReservationError::Undecided(StoreErrorKind::Unreachable));
    let (verdict, ttl_us) = reserve("meanwhile");
    assert_eq!((verdict.source, ttl_us.is_some()), (Source::FailOpen, true));
    gate.store().set_down(false);
    let settled = now(gate.end(NOW_US, "meanwhile", ReservationEnd::Settle(9))).unwrap();
    assert_eq!(settled.rows().len(), 0, "the store took nothing, so it has nothing to settle");
    now(gate.end(NOW_US, "before", ReservationEnd::Cancel)).unwrap();
    check(&gate, |verdict| assert_eq!(rows(verdict), [("l", true, 4)]));
}
