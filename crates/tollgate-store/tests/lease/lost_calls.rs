//! A holder that saw a later call than the store knows proves that the store lost writes.

use tollgate_core::algorithm::{FixedWindow, Gcra, SlidingWindow};
use tollgate_core::{Algorithm, LimitParams, Rate};
use tollgate_store::lease::{LeaseTerms, Ledger, LedgerReply, LedgerRequest};

const NOW_US: u64 = 1_700_000_000_100_000;

fn rate() -> Rate {
    Rate::try_new(1_000, 60_000_000).unwrap()
}

fn terms_of(params: LimitParams) -> LeaseTerms {
    LeaseTerms::for_limit(&params, 500_000, 100, 1_500_000).unwrap()
}

fn fixed() -> LeaseTerms {
    terms_of(LimitParams::FixedWindow(FixedWindow::new(rate())))
}

/// A holder as its process keeps it: what replies told it, and what it says next.
struct Process {
    terms: LeaseTerms,
    says: LedgerRequest,
}

impl Process {
    fn new(terms: LeaseTerms, number: u64) -> Self {
        let mut says = LedgerRequest::default();
        (says.holder.number, says.holder.process) = (number, [number as u32; 4]);
        Self { terms, says }
    }

    /// Asks for `units`, and returns `back` units.
    fn ask(&mut self, ledger: &mut Ledger, units: u64, back: u64) -> LedgerReply {
        (self.says.want, self.says.need) = (units, units);
        (self.says.returned, self.says.return_at_us) = (self.says.returned + back, NOW_US);
        let reply = ledger.handle(NOW_US, 1_000_000, &self.terms, &self.says);
        (self.says.ledger, self.says.known_granted) = (reply.ledger, reply.granted);
        (self.says.summary, self.says.acknowledged) = (reply.summary, reply.returned);
        self.says.last_call = reply.summary.calls;
        reply
    }
}

fn decide(ledger: &mut Ledger, terms: &LeaseTerms, units: u64) {
    terms.store_params.charge(ledger.state.get_or_insert_default(), NOW_US, units);
}

/// The store decides most of the limit itself, so that the totals of the book stay as they were.
/// A holder sees the decisions, and a failover loses them.
#[test]
fn a_holder_reports_decisions_of_the_store_that_no_total_contains() {
    let gcra = LimitParams::Gcra(Gcra::try_new(rate(), None).unwrap());
    let sliding = LimitParams::SlidingWindow(SlidingWindow::new(rate()));
    for terms in [fixed(), terms_of(gcra), terms_of(sliding)] {
        let (mut ledger, mut holder) = (Ledger::default(), Process::new(terms, 1));
        holder.ask(&mut ledger, 30, 0);
        let mut kept = ledger.clone();
        decide(&mut ledger, &terms, 500);
        let seen = holder.ask(&mut ledger, 0, 0);
        let reply = holder.ask(&mut kept, 0, 0);
        assert_eq!((reply.rolled_back, reply.left), (true, seen.left), "{terms:?}");
        let again = holder.ask(&mut kept, 0, 0);
        assert_eq!((again.rolled_back, again.left), (false, seen.left), "{terms:?}");
    }
}

/// After the failover one holder returns units once more. The totals are then as another holder
/// saw them, and the state still lacks what the store had decided itself.
#[test]
fn equal_totals_hide_no_lost_decision() {
    let (terms, mut ledger) = (fixed(), Ledger::default());
    let (mut first, mut second) = (Process::new(terms, 1), Process::new(terms, 2));
    first.ask(&mut ledger, 30, 0);
    second.ask(&mut ledger, 30, 0);
    let mut kept = ledger.clone();
    decide(&mut ledger, &terms, 40);
    let mut unanswered = first.says;
    first.ask(&mut ledger, 0, 20);
    (unanswered.want, unanswered.returned, unanswered.return_at_us) = (0, 20, NOW_US);
    let seen = second.ask(&mut ledger, 0, 0);
    assert_eq!((seen.left, seen.summary.returned), (920, 20));
    // The book has had as many calls as the second holder saw.
    kept.handle(NOW_US, 1_000_000, &terms, &unanswered);
    kept.handle(NOW_US, 1_000_000, &terms, &unanswered);
    let reply = kept.handle(NOW_US, 1_000_000, &terms, &unanswered);
    assert_eq!((reply.rolled_back, reply.left, reply.summary.returned), (false, 960, 20));
    let reply = second.ask(&mut kept, 0, 0);
    assert_eq!((reply.rolled_back, reply.left), (true, 920));
}

/// Two holders saw the lost book, which granted nothing. The first one to report saw less of what
/// the store had decided, and the restored book has had a call since.
#[test]
fn a_later_summary_of_a_lost_book_counts_whatever_was_called_since() {
    let (terms, mut ledger, mut restored) = (fixed(), Ledger::default(), Ledger::default());
    let (mut first, mut second) = (Process::new(terms, 1), Process::new(terms, 2));
    first.ask(&mut ledger, 0, 0);
    decide(&mut ledger, &terms, 40);
    assert_eq!(second.ask(&mut ledger, 0, 0).left, 960);
    for _ in 0..3 {
        assert_eq!(first.ask(&mut restored, 0, 0).left, 1_000);
    }
    let reply = second.ask(&mut restored, 0, 0);
    assert_eq!((reply.rolled_back, reply.left), (true, 960));
    let reply = first.ask(&mut restored, 0, 0);
    assert_eq!((reply.rolled_back, reply.left), (false, 960));
}

/// A request that is cancelled gives units back to the state alone. No call was lost, so that is no
/// loss.
#[test]
fn a_cancelled_request_is_no_loss() {
    let (terms, mut ledger) = (fixed(), Ledger::default());
    let mut holder = Process::new(terms, 1);
    decide(&mut ledger, &terms, 40);
    holder.ask(&mut ledger, 30, 0);
    let receipt = tollgate_core::Receipt { cost: 40, at_us: NOW_US, ..Default::default() };
    terms.store_params.give_back(ledger.state.as_mut().unwrap(), NOW_US, 40, &receipt);
    let reply = holder.ask(&mut ledger, 0, 0);
    assert_eq!((reply.rolled_back, reply.left), (false, 970));
}

/// A store that lost writes has granted since, and is then raised to a holder's summary. That
/// contains a return of another holder, which must not be credited again.
#[test]
fn a_raised_book_credits_no_return_that_it_contains() {
    let (terms, mut ledger) = (fixed(), Ledger::default());
    let (mut first, mut second) = (Process::new(terms, 1), Process::new(terms, 2));
    first.ask(&mut ledger, 30, 0);
    second.ask(&mut ledger, 30, 0);
    let mut kept = ledger.clone();
    decide(&mut ledger, &terms, 100);
    second.ask(&mut ledger, 0, 20);
    assert_eq!(first.ask(&mut ledger, 10, 0).left, 850);
    assert_eq!(Process::new(terms, 3).ask(&mut kept, 50, 0).left, 890);
    assert_eq!(first.ask(&mut kept, 0, 0).left, 850);
    assert_eq!(second.ask(&mut kept, 0, 0).left, 850);
}

/// A book that holders restored is lost again, with a later grant. The restored state does not
/// contain that grant.
#[test]
fn a_restored_book_that_loses_a_grant_is_charged() {
    let (terms, mut ledger) = (fixed(), Ledger::default());
    let mut holder = Process::new(terms, 1);
    holder.ask(&mut ledger, 30, 0);
    let mut restored = Ledger::default();
    assert!(holder.ask(&mut restored, 0, 0).rolled_back);
    let later_us = NOW_US + 2_000_000;
    holder.says.want = 0;
    let mut kept = restored.clone();
    (holder.says.want, holder.says.need) = (10, 10);
    let reply = restored.handle(later_us, 1_000_000, &terms, &holder.says);
    assert_eq!((reply.granted, reply.left), (40, 960));
    let mut other = LedgerRequest::default();
    (other.holder.number, other.want, other.need) = (2, 50, 50);
    assert_eq!(kept.handle(later_us, 1_000_000, &terms, &other).left, 920);
    (holder.says.known_granted, holder.says.summary) = (reply.granted, reply.summary);
    holder.says.last_call = reply.summary.calls;
    (holder.says.want, holder.says.need) = (0, 0);
    let reply = kept.handle(later_us, 1_000_000, &terms, &holder.says);
    assert_eq!((reply.rolled_back, reply.granted, reply.left), (true, 40, 910));
}

/// A node of a build before decision 0082 writes the book without numbers. Holders then seem to
/// have seen more than the store, which can undo returns of others, but credits nothing.
#[test]
fn a_book_without_numbers_credits_nothing() {
    let (terms, mut ledger) = (fixed(), Ledger::default());
    let (mut first, mut second) = (Process::new(terms, 1), Process::new(terms, 2));
    second.ask(&mut ledger, 30, 0);
    assert_eq!(first.ask(&mut ledger, 30, 0).left, 940);
    assert_eq!(second.ask(&mut ledger, 0, 20).left, 960);
    for left in [940, 930] {
        let book = ledger.book.as_mut().unwrap();
        (book.calls, book.reported_call, book.dropped_call) = (0, 0, 0);
        assert_eq!(first.ask(&mut ledger, 0, 0).left, left);
        assert_eq!(second.ask(&mut ledger, 0, 0).left, left);
        decide(&mut ledger, &terms, 10);
    }
}
