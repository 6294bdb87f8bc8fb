//! Processes that run late return what they can no longer spend.

use tollgate_core::algorithm::SlidingWindow;
use tollgate_core::{LimitParams, Rate};
use tollgate_store::lease::{Holder, Lease, LeaseTerms, Ledger};

const NOW_US: u64 = 1_700_000_000_000_000;

fn terms() -> LeaseTerms {
    let params = SlidingWindow::new(Rate::try_new(2_000, 60_000_000).unwrap());
    LeaseTerms::for_limit(&LimitParams::SlidingWindow(params), 500_000, 100, 1_500_000).unwrap()
}

fn holder(number: u64) -> Holder {
    Holder { process: [1; 4], number }
}

/// A process stops for longer than two lifetimes. The store still knows its holder.
#[test]
fn a_process_that_stopped_for_two_lifetimes_returns_its_units() {
    let (terms, mut ledger, mut lease) = (terms(), Ledger::default(), Lease::new(holder(1), 0));
    let ask = lease.start_request(&terms, 0, (400, false), 1, holder(2));
    let reply = ledger.handle(NOW_US, 1_000_000, &terms, &ask);
    let left = reply.left + reply.granted;
    assert_eq!(lease.apply_reply(&terms, 100, 1, &reply, holder(3)).granted, 400);
    let ask = lease.start_request(&terms, 1_400_000, (0, true), 2, holder(4));
    let reply = ledger.handle(NOW_US + 1_400_000, 1_000_000, &terms, &ask);
    let result = lease.apply_reply(&terms, 1_400_100, 2, &reply, holder(5));
    assert_eq!((reply.left, result.returned, lease.take_stranded()), (left, 400, 0));
}

/// The marker of the primary could not be read in time, so that the process must not spend what a
/// new ledger granted it.
#[test]
fn units_that_cannot_be_verified_are_returned() {
    let (terms, mut ledger, mut lease) = (terms(), Ledger::default(), Lease::new(holder(1), 0));
    let ask = lease.start_request(&terms, 0, (400, false), 1, holder(2));
    let reply = ledger.handle(NOW_US, 1_000_000, &terms, &ask);
    let left = reply.left + reply.granted;
    assert_eq!(lease.discard_reply(&terms, 100, 1, &reply, holder(3)).granted, 400);
    assert!(lease.spend(100, 1).is_none() && lease.should_return(100));
    let ask = lease.start_request(&terms, 200, (0, true), 2, holder(4));
    let reply = ledger.handle(NOW_US + 200, 1_000_000, &terms, &ask);
    let result = lease.apply_reply(&terms, 300, 2, &reply, holder(5));
    assert_eq!((reply.left, result.returned, lease.take_stranded()), (left, 400, 0));
}
