//! Loads with something to say about how well leases use a limit.

use crate::oracle::Oracle;
use crate::plan::{Faults, Plan};
use crate::rng::Rng;
use crate::world::World;
use tollgate_core::algorithm::{FixedWindow, Gcra};
use tollgate_core::{Algorithm, LimitParams, Rate, Receipt};
use tollgate_store::lease::{Holder, LeaseTerms, Ledger, LedgerRequest};

fn plan(nodes: usize, skew: u64) -> Plan {
    let params =
        LimitParams::FixedWindow(FixedWindow::new(Rate::try_new(1_000, 1_000_000).unwrap()));
    Plan {
        params,
        terms: LeaseTerms::for_limit(&params, 500_000, 100, 1_500_000).unwrap(),
        others: None,
        nodes,
        keys: 1,
        length_us: 8_000_000,
        between_us: 500,
        skew,
        cost_most: 1,
        phases_us: None,
        hoard: false,
        direct: false,
        sparse: 0,
        faults: Faults { delay_us: 200, ..Faults::default() },
    }
}

/// Nine of ten requests come to one of five nodes.
#[test]
fn a_skewed_load_gets_nearly_all_of_the_limit_and_never_more() {
    for seed in 0..8 {
        let mut world = World::new(plan(5, 9), Rng::new(seed), false);
        world.run().unwrap();
        let windows: Vec<_> = world.oracles[0].windows().iter().collect();
        // The first is the grace period of a store that no node knew, and the last was cut short.
        for (window, admitted) in &windows[3..windows.len() - 1] {
            assert!((970..=1_000).contains(*admitted), "seed {seed}, window {window}: {admitted}");
        }
        assert!(windows.len() > 6, "{windows:?}");
    }
}

/// Ten nodes that know nothing start on one key at once.
#[test]
fn a_cold_herd_shares_the_limit_with_few_calls() {
    for seed in 0..8 {
        let mut world = World::new(plan(10, 0), Rng::new(seed), false);
        world.run().unwrap();
        let most = world.oracles[0].windows().values().max().copied();
        assert!(most.is_some_and(|most| (970..=1_000).contains(&most)), "seed {seed}: {most:?}");
        assert!(world.calls * 4 < world.oracles[0].total(), "{} calls", world.calls);
    }
}

/// One server after the other takes over, with everything: no grace period begins.
#[test]
fn failovers_that_lose_nothing_cost_next_to_nothing() {
    for seed in 0..8 {
        let mut plan = plan(3, 0);
        plan.faults.hand_over = 20;
        let mut world = World::new(plan, Rng::new(seed), false);
        world.run().unwrap();
        let windows: Vec<_> = world.oracles[0].windows().iter().collect();
        for (window, admitted) in &windows[3..windows.len() - 1] {
            assert!((970..=1_000).contains(*admitted), "seed {seed}, window {window}: {admitted}");
        }
        assert!(windows.len() > 5, "{windows:?}");
    }
}

/// An operator changes the lifetime on one node after the other. Nodes with the shorter lifetime
/// do not forget those with the longer one, and take nothing for lost that the store knows.
#[test]
fn nodes_with_two_lifetimes_find_no_loss_where_there_was_none() {
    let rate = Rate::try_new(100, 1_000_000).unwrap();
    let params = LimitParams::Gcra(Gcra::try_new(rate, Some(600)).unwrap());
    let terms = |lifetime_us| LeaseTerms::for_limit(&params, lifetime_us, 100, 4_500_000);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let plan = Plan {
            params,
            terms: terms(2_000_000).unwrap(),
            others: terms(100_000),
            length_us: 25_000_000,
            between_us: 20_000,
            cost_most: 3,
            phases_us: Some((rng.within(50_000, 500_000), rng.within(1_000_000, 3_000_000))),
            ..plan(4, rng.pick(&[0, 5]))
        };
        let mut world = World::new(plan, rng, false);
        assert_eq!(world.run(), Ok(()), "seed {seed}");
        assert!(world.oracles[0].total() > 200, "seed {seed} hardly did anything");
    }
}

/// One node holds what it got for as long as it may. Meanwhile units return, and a node with the
/// shorter lifetime gets those and what its lifetime leaves the store beyond the other's.
#[test]
fn two_lifetimes_admit_what_returns_within_the_difference_and_no_more() {
    let rate = Rate::try_new(100, 1_000_000).unwrap();
    let params = LimitParams::Gcra(Gcra::try_new(rate, Some(600)).unwrap());
    let terms = |lifetime_us| LeaseTerms::for_limit(&params, lifetime_us, 100, 4_500_000).unwrap();
    let (long, short) = (terms(2_000_000), terms(100_000));
    let plan = Plan { params, terms: long, others: Some(short), ..plan(2, 0) };
    assert_eq!(plan.allowed_by_lifetimes(), 190, "1.9 s at 100 a second");
    let (mut ledger, now_us) = (Ledger::default(), 1_700_000_000_000_000);
    let mut ask = |at_us, terms: &LeaseTerms, (number, units)| {
        let mut ask = LedgerRequest::default();
        (ask.holder.number, ask.want, ask.need) = (number, units, units);
        let reply = ledger.handle(at_us, 1_000_000, terms, &ask);
        (reply.granted, reply.usable_us, reply.left)
    };
    assert_eq!(ask(now_us, &long, (1, 400)), (400, 2_000_000, 0));
    // At the last instant of the first grant. Both are spent at once.
    assert_eq!(ask(now_us + 2_000_000, &short, (2, 390)), (390, 100_000, 0));
    let mut oracle = Oracle::new(params, false);
    oracle.excuse(None, plan.allowed_by_lifetimes());
    assert_eq!(oracle.admit(now_us + 2_000_000, now_us, 400), Ok(0));
    assert_eq!(oracle.admit(now_us + 2_000_000, now_us, 390), Ok(1));
    assert!(oracle.admit(now_us + 2_000_000, now_us, 1).is_err(), "the bound is exact");
}

/// A node with more keys than room drops what it has spent and comes back as another holder, all
/// day long. Another node says nothing for hours.
#[test]
fn a_day_of_evicted_leases_leaves_no_more_in_a_book_than_there_are_nodes() {
    let params = LimitParams::FixedWindow(FixedWindow::new(
        Rate::try_new(1_000_000, 86_400_000_000).unwrap(),
    ));
    let terms = LeaseTerms::for_limit(&params, 500_000, 100, 1_500_000).unwrap();
    let (mut ledger, start_us) = (Ledger::default(), 1_699_920_000_000_000);
    let mut ask = LedgerRequest::default();
    (ask.holder, ask.want) = (Holder { process: [1; 4], number: 7 }, 10);
    let silent = ledger.handle(start_us, 1_000_000, &terms, &ask);
    let mut says = ask;
    (says.ledger, says.known_granted, says.want) = (silent.ledger, silent.granted, 0);
    let mut granted = silent.granted;
    for turn in 1..2_000 {
        ask.holder = Holder { process: [2; 4], number: turn };
        let reply = ledger.handle(start_us + turn * 1_000_000, 1_000_000, &terms, &ask);
        assert!(!reply.rolled_back && reply.granted > 0, "turn {turn}: {reply:?}");
        granted += reply.granted;
        let holders = ledger.book.as_ref().unwrap().holders.len();
        assert!(holders <= 6, "turn {turn}: {holders} are in the book");
    }
    let reply = ledger.handle(start_us + 2_000_000_000, 1_000_000, &terms, &says);
    assert!(!reply.rolled_back, "it was there all the time");
    assert_eq!(reply.left, 1_000_000 - granted, "what was granted stays counted");
}

/// A store that lost a book has granted from a new one before a holder of the old one says what it
/// has: that comes on top.
#[test]
fn a_holder_that_speaks_too_late_is_charged_on_top() {
    let terms = plan(2, 0).terms;
    let (mut lost, now_us) = (Ledger::default(), 1_700_000_000_100_000);
    let mut late = LedgerRequest::default();
    (late.holder.number, late.want, late.need) = (1, 30, 30);
    let reply = lost.handle(now_us, 1_000_000, &terms, &late);
    (late.ledger, late.known_granted, late.summary) = (reply.ledger, reply.granted, reply.summary);
    let mut ledger = Ledger::default();
    let mut other = LedgerRequest::default();
    (other.holder.number, other.want, other.need) = (2, 50, 50);
    assert_eq!(ledger.handle(now_us, 1_000_000, &terms, &other).left, 950);
    let reply = ledger.handle(now_us, 1_000_000, &terms, &late);
    assert!(reply.rolled_back);
    assert_eq!((reply.granted, reply.left), (30, 920));
}

/// The store had decided most of the limit itself. What it granted since it lost the book is more
/// than the totals of the holder that saw this.
#[test]
fn a_book_that_granted_since_is_raised_to_what_a_holder_saw() {
    let (terms, now_us) = (plan(2, 0).terms, 1_700_000_000_100_000);
    let mut lost = Ledger::default();
    let state = lost.state.get_or_insert_default();
    terms.store_params.charge(state, now_us, 400);
    let mut holder = LedgerRequest::default();
    (holder.holder.number, holder.want, holder.need) = (1, 30, 30);
    let reply = lost.handle(now_us, 1_000_000, &terms, &holder);
    let known = (reply.ledger, reply.granted, reply.summary);
    (holder.ledger, holder.known_granted, holder.summary) = known;
    let mut ledger = Ledger::default();
    let mut other = LedgerRequest::default();
    (other.holder.number, other.want, other.need) = (2, 50, 50);
    assert_eq!(ledger.handle(now_us, 1_000_000, &terms, &other).left, 950);
    holder.want = 0;
    let reply = ledger.handle(now_us, 1_000_000, &terms, &holder);
    assert!(reply.rolled_back && reply.reinstated);
    assert_eq!((reply.granted, reply.left), (30, 570));
}

/// A failover loses a return that was acknowledged. When its units were granted is forgotten, so
/// that a bucket cannot tell how much of them time has returned.
#[test]
fn a_bucket_does_not_credit_a_lost_return_again() {
    let rate = Rate::try_new(1_000, 1_000_000).unwrap();
    let params = LimitParams::Gcra(Gcra::try_new(rate, Some(2_000)).unwrap());
    let terms = LeaseTerms::for_limit(&params, 500_000, 100, 1_500_000).unwrap();
    let (mut ledger, now_us) = (Ledger::default(), 1_700_000_000_000_000);
    let mut ask = LedgerRequest::default();
    (ask.want, ask.need) = (400, 400);
    let reply = ledger.handle(now_us, 1_000_000, &terms, &ask);
    (ask.ledger, ask.known_granted, ask.summary) = (reply.ledger, reply.granted, reply.summary);
    (ask.want, ask.need, ask.returned, ask.acknowledged) = (0, 0, 400, 400);
    ask.return_at_us = tollgate_core::MAX_US;
    // Time has returned half of the units by now, and no node knows which half.
    let reply = ledger.handle(now_us + 200_000, 1_000_000, &terms, &ask);
    assert_eq!((reply.left, reply.returned), (1_300, 400));
}

/// The clock steps back by three windows. A direct decision dates the full state to the window
/// after the clock's, where it counts for the book too.
#[test]
fn a_book_keeps_to_the_window_of_a_state_that_a_decision_re_dated() {
    let (terms, window_us) = (plan(2, 0).terms, 1_000_000);
    let (mut ledger, now_us) = (Ledger::default(), 1_700_000_016 * window_us);
    let mut ask = LedgerRequest::default();
    (ask.want, ask.need) = (1_000, 1_000);
    assert_eq!(ledger.handle(now_us, 1_000_000, &terms, &ask).granted, 1_000);
    let stepped_us = now_us - 3 * window_us;
    assert!(terms.store_params.redate(ledger.state.as_mut().unwrap(), stepped_us));
    ask.holder.number = 1;
    for (later_us, granted) in [(window_us, 0), (2 * window_us, 1_000)] {
        let reply = ledger.handle(stepped_us + later_us, 1_000_000, &terms, &ask);
        assert_eq!(reply.granted, granted, "{later_us} µs after the step");
    }
}

/// A failover loses a return, and units that the store had decided itself. It has decided others
/// since. Crediting the return again must not make room for the lost ones.
#[test]
fn a_lost_return_does_not_hide_what_the_store_had_decided() {
    let (terms, now_us) = (plan(2, 0).terms, 1_700_000_000_100_000);
    let direct = |ledger: &mut Ledger, units| {
        terms.store_params.charge(ledger.state.get_or_insert_default(), now_us, units);
    };
    let (mut ledger, mut ask) = (Ledger::default(), LedgerRequest::default());
    (ask.want, ask.need) = (30, 30);
    let reply = ledger.handle(now_us, 1_000_000, &terms, &ask);
    let mut kept = ledger.clone();
    direct(&mut ledger, 40);
    (ask.ledger, ask.known_granted, ask.returned) = (reply.ledger, 30, 30);
    (ask.want, ask.need, ask.return_at_us, ask.summary) = (0, 0, now_us, reply.summary);
    let reply = ledger.handle(now_us, 1_000_000, &terms, &ask);
    assert_eq!((reply.returned, reply.left), (30, 960));
    (ask.acknowledged, ask.summary) = (30, reply.summary);
    direct(&mut kept, 15);
    let reply = kept.handle(now_us, 1_000_000, &terms, &ask);
    assert!(reply.rolled_back);
    assert_eq!((reply.returned, reply.left), (30, 955));
}

/// A store loses the book of a window, and a process that knows nothing of it begins another. What
/// the store had decided itself is in no total of the lost book, but in what a process saw.
#[test]
fn a_process_that_is_not_in_the_book_of_its_window_says_what_it_saw() {
    let (terms, now_us) = (plan(2, 0).terms, 1_700_000_000_100_000);
    let mut lost = Ledger::default();
    terms.store_params.charge(lost.state.get_or_insert_default(), now_us, 400);
    let mut knows = LedgerRequest::default();
    knows.holder.process = [1; 4];
    let reply = lost.handle(now_us, 1_000_000, &terms, &knows);
    (knows.ledger, knows.summary, knows.last_call) = (reply.ledger, reply.summary, 1);
    let mut ledger = Ledger::default();
    let mut other = LedgerRequest::default();
    other.holder.process = [2; 4];
    assert_eq!(ledger.handle(now_us, 1_000_000, &terms, &other).left, 1_000);
    let reply = ledger.handle(now_us, 1_000_000, &terms, &knows);
    assert_eq!((reply.rolled_back, reply.left), (true, 600));
    // A cancelled request lowers the state. The process has an entry now, so nothing was lost.
    let receipt = Receipt { cost: 50, at_us: now_us, ..Receipt::default() };
    terms.store_params.give_back(ledger.state.as_mut().unwrap(), now_us, 50, &receipt);
    (knows.holder.number, knows.last_call) = (1, 0);
    let reply = ledger.handle(now_us, 1_000_000, &terms, &knows);
    assert_eq!((reply.rolled_back, reply.left), (false, 650));
}

/// The clock steps back by less than a bucket's leap, so that the book's own clock stands still.
/// Time still returns units to the bucket, and a return must not credit them again.
#[test]
fn a_bucket_discounts_returns_while_the_book_waits_for_the_clock() {
    let rate = Rate::try_new(1_000, 1_000_000).unwrap();
    let params = LimitParams::Gcra(Gcra::try_new(rate, Some(2_000)).unwrap());
    let terms = LeaseTerms::for_limit(&params, 500_000, 100, 1_500_000).unwrap();
    let (mut ledger, now_us) = (Ledger::default(), 1_700_000_000_000_000);
    ledger.handle(now_us, 1_000_000, &terms, &LedgerRequest::default());
    let stepped_us = now_us - 900_000;
    let ask = |number, units| {
        let mut ask = LedgerRequest::default();
        (ask.holder.number, ask.want, ask.need) = (number, units, units);
        ask
    };
    assert_eq!(ledger.handle(stepped_us, 1_000_000, &terms, &ask(1, 1_000)).left, 500);
    let mut holder = ask(2, 400);
    let reply = ledger.handle(stepped_us, 1_000_000, &terms, &holder);
    assert_eq!((reply.left, reply.oldest_grant_us), (100, stepped_us));
    (holder.ledger, holder.known_granted, holder.returned) = (reply.ledger, 400, 400);
    (holder.want, holder.need, holder.summary) = (0, 0, reply.summary);
    holder.return_at_us = reply.oldest_grant_us;
    let reply = ledger.handle(stepped_us + 400_000, 1_000_000, &terms, &holder);
    assert_eq!((reply.returned, reply.left), (400, 500));
}

/// Direct decisions read a bucket by the clock as it is. A book that has seen a later instant must
/// not take units for refilled that they have just used.
#[test]
fn a_bucket_is_read_by_the_clock_of_direct_decisions() {
    let rate = Rate::try_new(1_000, 1_000_000).unwrap();
    let params = LimitParams::Gcra(Gcra::try_new(rate, Some(2_000)).unwrap());
    let terms = LeaseTerms::for_limit(&params, 500_000, 100, 1_500_000).unwrap();
    let (mut ledger, now_us) = (Ledger::default(), 1_700_000_000_000_000);
    let mut ask = LedgerRequest::default();
    ledger.handle(now_us, 1_000_000, &terms, &ask);
    let stepped_us = now_us - 1_000_000;
    terms.store_params.charge(ledger.state.as_mut().unwrap(), stepped_us, 1_500);
    (ask.want, ask.need) = (1_500, 1);
    let reply = ledger.handle(stepped_us, 1_000_000, &terms, &ask);
    assert_eq!((reply.granted, reply.left), (0, 0));
}

/// A failover loses a return of one holder and a later grant to another. The summary of the second
/// contains the return, so the first must not get it credited again.
#[test]
fn a_restored_book_credits_no_return_that_it_contains() {
    let (terms, now_us) = (plan(2, 0).terms, 1_700_000_000_100_000);
    let mut ledger = Ledger::default();
    let take = |ledger: &mut Ledger, ask: &mut LedgerRequest, units| {
        (ask.want, ask.need) = (units, units);
        let reply = ledger.handle(now_us, 1_000_000, &terms, ask);
        (ask.ledger, ask.known_granted, ask.summary) = (reply.ledger, reply.granted, reply.summary);
        (ask.want, ask.need, ask.acknowledged) = (0, 0, reply.returned);
        reply
    };
    let (mut first, mut second) = (LedgerRequest::default(), LedgerRequest::default());
    second.holder.number = 1;
    take(&mut ledger, &mut first, 30);
    take(&mut ledger, &mut second, 30);
    let mut kept = ledger.clone();
    (first.returned, first.return_at_us) = (20, now_us);
    take(&mut ledger, &mut first, 0);
    assert_eq!(take(&mut ledger, &mut second, 10).left, 950);
    assert!(take(&mut kept, &mut second, 0).rolled_back);
    let reply = take(&mut kept, &mut first, 0);
    assert_eq!((reply.returned, reply.left), (20, 940));
}
