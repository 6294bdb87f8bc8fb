//! What a store lost of a key, and what that excuses.

use std::collections::BTreeSet;
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState};
use tollgate_store::lease::{LeaseTerms, Ledger, Restored};

/// What a store lost, until everybody concerned had the time to say so.
#[derive(Debug)]
pub(crate) struct Loss {
    pub(crate) key: usize,
    /// Of fixed windows.
    pub(crate) window: Option<u64>,
    /// The ledger as it would be if nothing had been lost.
    pub(crate) unlost: Ledger,
    /// The totals of the lost book, and whether somebody who had seen them spoke since.
    pub(crate) totals: (u64, u64),
    pub(crate) said: bool,
    /// Processes that spoke since.
    pub(crate) spoke: BTreeSet<[u32; 4]>,
    /// Whether a process that had seen them lives, and nothing keeps it from saying so.
    pub(crate) must_be_said: bool,
    /// Whether the store lost everything.
    pub(crate) all: bool,
    /// Units that holders had when the store lost them, and in what it kept: how much a summary may
    /// be out of date.
    pub(crate) held: u64,
    /// Whether units were granted or cancelled since, more was lost, or holders used another
    /// ledger: then the two differ.
    pub(crate) differs: bool,
    /// Whether only the state was evicted, which the book has a copy of: as long as the store does
    /// not decide by itself.
    pub(crate) copied: bool,
    /// Whether the store then did decide by itself. Its new state hides the copy, and no report of
    /// a holder shows that: the totals of the book are as they were.
    pub(crate) forgotten: bool,
    /// Units that were lost and that nobody said: the store decided them after the last call that
    /// somebody reported.
    pub(crate) unseen: u64,
    /// Units that the store had decided itself when it lost the key.
    pub(crate) decided_before: u64,
    /// Units that it lacked when it lost the key again.
    pub(crate) lacked: u64,
    /// Units that the store decided by itself before they were said. The larger of these and of
    /// what is said counts, not the sum.
    pub(crate) merged: u64,
    /// Units that it decided by itself after a report that did not contain all.
    pub(crate) pending: u64,
    /// Whether it decided by itself at all.
    pub(crate) decided: bool,
    /// Units that it gave away, and would not have without the loss.
    pub(crate) given: u64,
    /// Returns that were credited since.
    pub(crate) credited: u64,
    /// Returns that were not credited, since they may have been before.
    pub(crate) forfeited: u64,
    pub(crate) grace_until_us: u64,
    /// Whether the primary's mark shows nothing of it, since the key was evicted or has moved, and
    /// nobody who knew of it has asked there yet.
    pub(crate) unmarked: bool,
    /// Whether the mark does not show the loss to any process: the store still decides by itself.
    pub(crate) hidden: bool,
    /// Whether the key moved or was lost again. Returns are then credited and forgotten in turn,
    /// so that only the bound above is judged, not the one below.
    pub(crate) again: bool,
}

impl Loss {
    /// The store lost the key again, whose state was `state`. What it would be without any loss
    /// stays; a process that saw the key since does not know what it lacked.
    ///
    /// An eviction begins no grace period of its own, so units that the store lacked may be
    /// admitted as soon as the earlier one is over: they are excused now.
    pub(crate) fn lose_again(
        &mut self,
        again: Self,
        state: LimitState,
        clock_us: u64,
        terms: &LeaseTerms,
        evicted: bool,
    ) -> u64 {
        let mut unlost = std::mem::take(&mut self.unlost);
        let was = unlost.state.clone().unwrap_or_default();
        let [is, was] = [&state, &was].map(|one| left(&terms.store_params, one, clock_us));
        let lacked = is.saturating_sub(was);
        let excused = if evicted { lacked } else { 0 };
        if excused > 0 {
            unlost.state = Some(state);
        }
        *self = Self {
            unlost: Ledger { book: again.unlost.book.clone(), ..unlost },
            lacked: lacked - excused,
            decided: self.decided,
            given: self.given,
            held: self.held.max(again.held),
            credited: self.credited,
            forfeited: self.forfeited,
            unmarked: self.unmarked || again.unmarked,
            hidden: self.hidden || again.hidden,
            copied: self.copied || again.copied,
            forgotten: self.forgotten || again.forgotten,
            differs: true,
            again: true,
            ..again
        };
        excused
    }

    /// Somebody reports a call, before which the store had decided `seen` units itself. What it
    /// decided since the last report and what this one adds are merged.
    pub(crate) fn report(&mut self, seen: Option<u64>) {
        let Some(after) = seen.map(|seen| self.decided_before.saturating_sub(seen)) else { return };
        let added = self.unseen.saturating_sub(after);
        self.merged += added.min(self.pending);
        self.unseen -= added;
    }
}

pub(crate) fn left(params: &LimitParams, state: &LimitState, clock_us: u64) -> u64 {
    params.decide(state, clock_us, 0, Intent::Peek).remaining
}

/// Units that a store can give away beyond those that it could without the loss. A bucket that
/// lacks a part of a unit gives away a whole one earlier, so the part counts as one.
pub(crate) fn gained(
    params: &LimitParams,
    [is, unlost]: [Option<LimitState>; 2],
    clock_us: u64,
) -> u64 {
    let [is, unlost] = [is, unlost].map(Option::unwrap_or_default);
    if params.bucket().is_none() {
        return left(params, &is, clock_us).saturating_sub(left(params, &unlost, clock_us));
    }
    let [is_us, unlost_us] = [is, unlost].map(|one| params.idle_at_us(&one).max(clock_us));
    match unlost_us.saturating_sub(is_us) {
        0 => 0,
        // Both instants are rounded up.
        earlier_us => ((earlier_us + 1) * params.count()).div_ceil(params.period_us()),
    }
}

/// Units that were returned.
pub(crate) fn returned(ledger: &Ledger) -> u64 {
    ledger.book.as_ref().map_or(0, |book| book.returned)
}

/// Units that were granted and not returned.
pub(crate) fn held(ledger: &Ledger) -> u64 {
    let holders = ledger.book.iter().flat_map(|book| book.holders.values());
    holders.map(|one| one.granted - one.returned).sum()
}

/// What the loss of a key means, unless it has no state.
pub(crate) fn loss(
    key: usize,
    before: &Ledger,
    clock_us: u64,
    now_us: u64,
    terms: &LeaseTerms,
) -> Option<Loss> {
    let params = &terms.store_params;
    let fixed = matches!(params, LimitParams::FixedWindow(_));
    let window = clock_us / params.period_us();
    // The store may have decided by itself, without any book.
    let book = before.book.as_ref().filter(|book| !fixed || book.ledger >= window);
    let mut unlost = before.clone();
    unlost.state = unlost.state.or(before.book.as_ref().map(|book| book.copy.clone()));
    unlost.state.as_ref()?;
    Some(Loss {
        key,
        window: fixed.then(|| book.map_or(window, |book| book.ledger)),
        unlost,
        totals: book.map_or((0, 0), |book| (book.granted, book.returned)),
        said: false,
        spoke: BTreeSet::new(),
        must_be_said: false,
        all: false,
        held: held(before),
        // The totals of a restored book may be behind its state.
        differs: book.is_some_and(|book| book.restored != Restored::No),
        copied: false,
        forgotten: false,
        unseen: 0,
        decided_before: 0,
        lacked: 0,
        merged: 0,
        pending: 0,
        decided: false,
        given: 0,
        credited: 0,
        forfeited: 0,
        grace_until_us: now_us + terms.grace_us,
        unmarked: false,
        hidden: false,
        again: false,
    })
}
