use super::*;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{LimitParams, Rate};

fn terms() -> LeaseTerms {
    let rate = Rate::try_new(1_000, 60_000_000).unwrap();
    LeaseTerms::for_limit(
        &LimitParams::FixedWindow(FixedWindow::new(rate)),
        500_000,
        100,
        1_500_000,
    )
    .unwrap()
}

fn holder(number: u64) -> Holder {
    Holder { number, ..Holder::default() }
}

fn reply(ledger: u64, granted: u64) -> LedgerReply {
    LedgerReply {
        ledger,
        granted,
        usable_us: 500_000,
        kept_us: 9_000_000,
        ..LedgerReply::default()
    }
}

/// A lease that asked at 1,000 and received ten units.
fn ten() -> Lease {
    let mut lease = Lease::new(holder(1), 0);
    lease.start_request(&terms(), 1_000, (1, false), 1, holder(2));
    assert_eq!(lease.apply_reply(&terms(), 2_000, 1, &reply(7, 10), holder(2)).granted, 10);
    lease
}

#[test]
fn units_are_good_from_the_moment_of_sending() {
    let mut lease = ten();
    assert!(lease.spend(500_498, 1).is_some());
    // 500,000 us by the store's clock are at least 499,499 by the process's clock.
    assert!(lease.spend(500_499, 1).is_none());
    assert_eq!(lease.totals().2, [10, 1, 9]);
}

#[test]
fn an_answer_counts_once_and_only_for_the_last_request() {
    let mut lease = ten();
    assert_eq!(
        lease.apply_reply(&terms(), 3_000, 1, &reply(7, 10), holder(3)),
        RenewalResult::default()
    );
    lease.start_request(&terms(), 4_000, (100, false), 2, holder(3));
    assert_eq!(
        lease.apply_reply(&terms(), 5_000, 1, &reply(7, 99), holder(3)),
        RenewalResult::default()
    );
    assert_eq!(lease.apply_reply(&terms(), 5_000, 2, &reply(7, 15), holder(3)).granted, 5);
    assert_eq!(lease.balance(), 15);
}

#[test]
fn another_window_leaves_what_was_held_behind() {
    let mut lease = ten();
    lease.start_request(&terms(), 4_000, (100, false), 2, holder(3));
    let heard = lease.apply_reply(&terms(), 5_000, 2, &reply(8, 4), holder(3));
    assert_eq!((lease.take_stranded(), heard.granted), (10, 4));
    assert_eq!(lease.totals(), (holder(1), 8, [4, 0, 0]));
}

#[test]
fn a_node_that_returns_to_a_ledger_is_a_new_holder() {
    let mut lease = ten();
    lease.start_request(&terms(), 4_000, (100, false), 2, holder(3));
    lease.apply_reply(&terms(), 5_000, 2, &reply(6, 4), holder(3));
    assert_eq!(lease.totals(), (holder(3), 6, [0, 0, 0]));
}

#[test]
fn what_a_refused_request_spent_comes_back_with_its_own_end() {
    let mut lease = ten();
    let spent = lease.spend(3_000, 10).unwrap();
    lease.start_request(&terms(), 400_000, (1, false), 2, holder(3));
    lease.apply_reply(&terms(), 401_000, 2, &reply(7, 20), holder(3));
    lease.refund(402_000, &spent);
    // The grant of these units is gone, so they are returned instead of joining the next grant.
    assert_eq!(lease.totals().2, [20, 0, 10]);
    let spent = lease.spend(403_000, 4).unwrap();
    lease.refund(404_000, &spent);
    assert_eq!(lease.totals().2, [20, 0, 10]);
}

#[test]
fn a_window_is_remembered_to_its_end_and_a_bucket_as_long_as_it_is_kept() {
    let mut lease = ten();
    let ask = lease.start_request(&terms(), 1_503_000, (1, false), 2, holder(3));
    assert_eq!((ask.holder, ask.ledger, ask.known_granted), (holder(1), 7, 10));
    let rate = Rate::try_new(1_000, 1_000_000).unwrap();
    let params = LimitParams::Gcra(tollgate_core::algorithm::Gcra::try_new(rate, None).unwrap());
    let terms = LeaseTerms::for_limit(&params, 500_000, 100, 1_500_000).unwrap();
    let mut lease = Lease::new(holder(1), 0);
    lease.start_request(&terms, 1_000, (1, false), 1, holder(2));
    lease.apply_reply(&terms, 2_000, 1, &reply(7, 10), holder(2));
    let ask = lease.start_request(&terms, 1_503_000, (1, false), 2, holder(3));
    assert_eq!((ask.holder, ask.ledger, ask.known_granted), (holder(3), 7, 0));
    lease.request_failed(2);
    let ask = lease.start_request(&terms, 9_000_000, (1, false), 3, holder(4));
    assert_eq!((ask.holder, ask.ledger, ask.known_granted), (holder(4), 0, 0));
}

#[test]
fn what_expired_is_returned_with_the_time_of_its_grant() {
    let mut lease = ten();
    assert!(lease.should_return(600_000));
    let ask = lease.start_request(&terms(), 600_000, (1, false), 2, holder(3));
    assert_eq!((ask.known_granted, ask.returned, ask.return_at_us), (10, 10, 0));
}

#[test]
fn a_return_says_nothing_about_what_is_left() {
    let mut lease = ten();
    assert!(lease.should_return(600_000));
    lease.start_request(&terms(), 600_000, (0, true), 2, holder(3));
    let returned = LedgerReply { returned: 10, left: 999, retry_after_us: Some(0), ..reply(7, 10) };
    lease.apply_reply(&terms(), 601_000, 2, &returned, holder(3));
    assert!(lease.should_ask(601_000, 1), "a request that comes now finds nothing held");
    lease.start_request(&terms(), 602_000, (1, false), 3, holder(3));
    let nothing = LedgerReply { left: 0, retry_after_us: None, ..returned };
    lease.apply_reply(&terms(), 603_000, 3, &nothing, holder(3));
    assert!(!lease.should_ask(603_000, 1), "the store had nothing");
}

#[test]
fn few_requests_are_not_taken_for_many() {
    let mut lease = Lease::new(holder(1), 0);
    let mut want = |requests: u64, now_us: u64| {
        for _ in 0..requests {
            let _ = lease.spend(now_us, 1);
        }
        let want = lease.start_request(&terms(), now_us, (1, false), now_us, holder(2)).want;
        lease.request_failed(now_us);
        want
    };
    assert_eq!(want(1, 0), 1, "one request says nothing about the next");
    assert_eq!(want(1, 10_000), 1, "nor do two in a short time");
    assert_eq!(want(7, 20_000), 64, "eight times what was seen");
    // Ten in a quarter of a lifetime predict as many for half a lifetime.
    assert_eq!(want(2, 125_000), 20);
    assert_eq!(want(1, 10_000_000), 10, "half of what was wanted before, and no more");
    assert_eq!(want(1, 20_000_000), 5);
}

/// The store keeps a holder by the lifetime that came with its last request.
#[test]
fn a_longer_lifetime_does_not_prolong_what_the_store_remembers() {
    let terms = |lifetime_us| {
        let rate = Rate::try_new(1_000, 1_000_000).unwrap();
        let gcra = tollgate_core::algorithm::Gcra::try_new(rate, Some(10_000)).unwrap();
        LeaseTerms::for_limit(&LimitParams::Gcra(gcra), lifetime_us, 100, 8_000_000).unwrap()
    };
    let (short, long) = (terms(100_000), terms(3_000_000));
    let asked = |answered: &LeaseTerms, unanswered: Option<&LeaseTerms>| {
        let mut lease = Lease::new(holder(1), 0);
        lease.start_request(answered, 1_000, (1, false), 1, holder(2));
        lease.apply_reply(answered, 2_000, 1, &reply(7, 10), holder(2));
        if let Some(terms) = unanswered {
            lease.start_request(terms, 3_000, (1, false), 2, holder(3));
            lease.request_failed(2);
        }
        lease.start_request(&long, 1_300_000, (1, false), 3, holder(4)).holder
    };
    assert_eq!(asked(&long, None), holder(1));
    assert_eq!(asked(&short, None), holder(4));
    assert_eq!(asked(&long, Some(&short)), holder(4), "the store may have got the last request");
}

/// Another process was granted 400 of 1,000 units. It may return them for two lifetimes, so the
/// wait is that until the store is asked again, not the rest of the window.
#[test]
fn a_refusal_waits_for_units_that_other_holders_may_return() {
    let (terms, window_us) = (terms(), 60_000_000);
    let refused_at = |lease: &mut Lease, number, now_us: u64, (granted, returned): (u64, u64)| {
        lease.start_request(&terms, now_us, (1, false), number, holder(2));
        let mut reply = reply(7, 10);
        (reply.summary.granted, reply.summary.returned) = (10 + granted, returned);
        reply.retry_after_us = Some(window_us - now_us);
        lease.apply_reply(&terms, now_us, number, &reply, holder(2));
        (lease.snapshot().retry_us.unwrap(), lease.ask_not_before_us())
    };
    let mut lease = ten();
    lease.spend(3_000, 10).unwrap();
    assert_eq!(refused_at(&mut lease, 2, 10_000, (400, 0)), (10_000, 510_000));
    assert_eq!(refused_at(&mut lease, 3, 600_000, (400, 0)), (600_000, 1_100_000));
    // Nobody was granted anything for two lifetimes: all that was not returned is spent.
    assert_eq!(refused_at(&mut lease, 4, 1_200_000, (400, 0)).0, window_us);
    // A new grant may be returned again, and after its return nothing is left to wait for.
    assert_eq!(refused_at(&mut lease, 5, 1_800_000, (420, 0)).0, 1_800_000);
    assert_eq!(refused_at(&mut lease, 6, 2_400_000, (420, 420)).0, window_us);
}
