//! The store's side of a lease: `ledger.lua` in Rust, for the simulator and for readers.

use super::summary::{figures, restore};
use super::{BookSummary, Holder, LeaseTerms, LedgerReply, LedgerRequest};
use std::collections::BTreeMap;
use tollgate_core::algorithm::Bucket;
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState, Receipt};

/// The state of one limit and key in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The limit's state, as for direct decisions. Granted units count as used.
    pub state: Option<LimitState>,
    /// The end of an operator's block.
    pub block_us: u64,
    /// The holders; `None` if expired or lost.
    pub book: Option<GrantBook>,
    /// The expiry of state and book, by the store's clock.
    pub expires_us: u64,
}

/// The holders of one limit and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantBook {
    /// The latest instant seen.
    pub last_us: u64,
    /// The ledger's id: the number of the window, or the start of the ledger.
    pub ledger: u64,
    /// The end of the grace period, before which nothing is granted.
    pub grace_until_us: u64,
    /// The time of the last sweep of dead holders.
    pub swept_us: u64,
    /// The start of the book. A book older than the store's last loss is complete.
    pub begun_us: u64,
    /// The instant until which the ledger is kept, as told to holders.
    pub kept_until_us: u64,
    /// Units granted in this ledger, to all holders.
    pub granted: u64,
    /// Units returned in this ledger, by all holders.
    pub returned: u64,
    /// The number of the last call. Restoring the book continues at the next multiple of
    /// 2^32, beyond all calls that the store lost.
    pub calls: u64,
    /// The latest lost call whose summary a holder has reported.
    pub reported_call: u64,
    /// The last call before the book dropped the entries of its holders.
    pub dropped_call: u64,
    /// Whether holders restored the book after a loss.
    pub restored: Restored,
    /// A copy of the state, in case the state alone is lost.
    pub copy: LimitState,
    /// The entry of each holder.
    pub holders: BTreeMap<Holder, HolderGrant>,
}

/// Whether holders restored a book after a loss (I7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restored {
    /// The book has lost nothing that it was told.
    #[default]
    No,
    /// The state comes from holders only. A later summary replaces it.
    Purely,
    /// The state has other charges too. A later summary can only raise it.
    Partly,
}

/// The entry of one holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HolderGrant {
    /// Units granted, cumulative.
    pub granted: u64,
    /// Units returned, cumulative.
    pub returned: u64,
    /// The grant time of the oldest units that the holder may not know.
    pub oldest_grant_us: u64,
    /// The time of the holder's last request.
    pub seen_us: u64,
    /// The number of the holder's last call. A holder that saw a larger number proves a loss.
    pub last_call: u64,
    /// The instant from which the entry can be reclaimed, by the holder's own lifetime.
    pub reclaim_at_us: u64,
}

/// A restored book numbers its calls from the next multiple of this on, so that no new call has the
/// number of a lost one.
const LINEAGE: u64 = 1 << 32;

/// One call of the script.
struct LedgerCall<'a> {
    params: &'a LimitParams,
    state: LimitState,
    now_us: u64,
    /// The instant at which the state is read and charged.
    state_us: u64,
    book: GrantBook,
    /// Whether a state was stored.
    had_state: bool,
    /// Whether a direct decision changed the state since the last call.
    decided_directly: bool,
    rolled_back: bool,
    reinstated: bool,
    /// Whether this call proved a new loss, so that its number starts at the next multiple of
    /// [`LINEAGE`].
    begins_lineage: bool,
}

impl GrantBook {
    /// Drops the entries of all holders: which of their returns the state contains is unknown.
    fn drop_holders(&mut self) {
        self.holders.clear();
        self.dropped_call = self.calls;
    }
}

impl Restored {
    /// The value after a charge that no summary of the lost book contains.
    const fn charged(self) -> Self {
        match self {
            Self::No => Self::No,
            Self::Purely | Self::Partly => Self::Partly,
        }
    }
}

impl Ledger {
    /// Drops the ledger if it has expired.
    pub fn expire(&mut self, raw_us: u64) {
        if raw_us >= self.expires_us {
            *self = Self::default();
        }
    }

    /// Handles one request, as the script does. `raw_us` is the store's clock.
    pub fn handle(
        &mut self,
        raw_us: u64,
        ttl_margin_us: u64,
        terms: &LeaseTerms,
        request: &LedgerRequest,
    ) -> LedgerReply {
        let params = &terms.store_params;
        let period_us = params.period_us();
        let fixed = matches!(params, LimitParams::FixedWindow(_));
        let windowed = fixed || matches!(params, LimitParams::SlidingWindow(_));
        let known_book = self.book.is_some();
        let mut call = self.load(raw_us, terms, windowed);
        let window = fixed.then(|| call.now_us / period_us);
        let is_begun = call.select_ledger(known_book, window, request);
        call.restore(is_begun, fixed, request);
        let now_us = call.now_us;
        let mut entry = call.reconcile_holder(terms, request, fixed);
        call.sweep(terms, request, fixed);

        let blocked = now_us < self.block_us;
        let mut left = if blocked { 0 } else { call.left() };
        left -= call.grant(&mut entry, left, request);
        (entry.seen_us, entry.reclaim_at_us) = (now_us, now_us + terms.reclaim_us());
        entry.last_call = call.number_call(request);
        call.book.holders.insert(request.holder, entry);

        let idle_us = params.idle_at_us(&call.state).max(self.block_us);
        let windows_us = if windowed { 2 * period_us } else { 0 };
        let grace_us = call.book.grace_until_us.saturating_sub(now_us);
        let kept_us = idle_us.saturating_sub(call.state_us).max(windows_us).max(grace_us);
        // Never shorter than what other holders were told: they may have longer leases.
        call.book.kept_until_us =
            call.book.kept_until_us.max(now_us + kept_us + terms.reclaim_us());
        let kept_us = call.book.kept_until_us - now_us;
        let mut usable_us =
            terms.lifetime_us.saturating_sub(call.state_us.saturating_sub(entry.oldest_grant_us));
        if fixed {
            usable_us = usable_us.min(period_us - now_us % period_us);
        }
        let shown = params.decide(&call.state, call.state_us, request.need.max(1), Intent::Peek);
        let blocked_us = blocked.then(|| self.block_us - now_us);
        let reply = LedgerReply {
            ledger: call.book.ledger,
            granted: entry.granted,
            returned: entry.returned,
            oldest_grant_us: entry.oldest_grant_us,
            usable_us,
            grace_us,
            left,
            kept_us,
            age_us: now_us.saturating_sub(call.book.begun_us),
            rolled_back: call.rolled_back,
            reinstated: call.reinstated,
            summary: call.summary(),
            retry_after_us: shown.retry_after_us.max(blocked_us),
            reset_after_us: shown.reset_after_us,
        };
        call.book.last_us = now_us;
        call.book.copy = call.state.clone();
        self.state = Some(call.state);
        self.book = Some(call.book);
        self.expires_us = raw_us + kept_us.div_ceil(1_000) * 1_000 + ttl_margin_us;
        reply
    }

    /// Loads the ledger at the latest instant seen, unless the clock stepped back by more than a
    /// window. Takes state and book; the end of the call puts them back, without copying a thousand
    /// holders.
    fn load<'a>(&mut self, raw_us: u64, terms: &'a LeaseTerms, windowed: bool) -> LedgerCall<'a> {
        let params = &terms.store_params;
        let had_state = self.state.is_some();
        let copy = self.book.as_ref().map(|book| book.copy.clone());
        let decided_directly = had_state && self.state != copy;
        let state = self.state.take().or(copy);
        let mut state = state.unwrap_or_default();
        params.redate(&mut state, raw_us);
        let mut book = self.book.take().unwrap_or_default();
        let mut now_us = raw_us.max(book.last_us);
        let period_us = params.period_us();
        if book.last_us > raw_us + params.bucket().map_or(period_us, Bucket::leap_us) {
            // A re-dated window state says below how far ahead the key is. A direct decision may
            // have re-dated it before, so the book must not choose a window of its own.
            now_us = raw_us;
            book.grace_until_us = book.grace_until_us.min(now_us + terms.grace_us);
            book.swept_us = book.swept_us.min(now_us);
            book.begun_us = book.begun_us.min(now_us);
            book.kept_until_us = 0;
        }
        if windowed {
            let index = match &state {
                LimitState::FixedWindow(state) => state.index,
                LimitState::SlidingWindow(state) => state.index,
                _ => 0,
            };
            now_us = now_us.max(index * period_us);
        }
        LedgerCall {
            params,
            state,
            now_us,
            // Direct decisions read a bucket by the unadjusted clock, and may have re-dated it.
            state_us: if windowed { now_us } else { raw_us },
            book,
            had_state,
            decided_directly,
            rolled_back: false,
            reinstated: false,
            begins_lineage: false,
        }
    }
}

impl LedgerCall<'_> {
    fn left(&self) -> u64 {
        self.params.decide(&self.state, self.state_us, 0, Intent::Peek).remaining
    }

    fn restart(&mut self, ledger: u64) {
        self.book.holders.clear();
        self.book.ledger = ledger;
        self.book.swept_us = self.now_us;
        (self.book.granted, self.book.returned) = (0, 0);
        (self.book.calls, self.book.reported_call, self.book.dropped_call) = (0, 0, 0);
        self.book.restored = Restored::No;
    }

    /// Selects the ledger: that of the window, or the one begun when the key was last unknown. A
    /// lost ledger continues under its id, so that its holders keep their units. Returns whether
    /// the ledger began before; if not, a holder that knows it has seen more than the store.
    fn select_ledger(&mut self, known: bool, window: Option<u64>, request: &LedgerRequest) -> bool {
        let is_begun = known && window.is_none_or(|index| self.book.ledger >= index);
        if !known {
            self.book.begun_us = self.now_us;
        }
        if let Some(index) = window {
            if !is_begun {
                self.restart(index);
            }
            self.book.ledger = index;
        } else if !known {
            self.restart(if request.ledger == 0 { self.now_us } else { request.ledger });
        }
        if self.decided_directly {
            self.book.restored = self.book.restored.charged();
        }
        is_begun
    }

    /// Restores a book from the summary of a holder that has seen more (I7). The summary contains
    /// all grants to that holder. Which returns of other holders it contains is unknown, so every
    /// holder must be reinstated.
    fn restore(&mut self, known: bool, fixed: bool, request: &LedgerRequest) {
        let named = request.ledger == self.book.ledger;
        if request.ledger == 0 || fixed && !named {
            return;
        }
        let is_new_loss = !known || self.book.restored == Restored::No || self.proves_loss(request);
        let (theirs, book) = (&request.summary, &mut self.book);
        let pure = book.restored == Restored::Purely;
        // A lost call after those that holders have reported so far.
        let lost_calls = book.reported_call + 1..book.calls / LINEAGE * LINEAGE;
        let is_unreported = lost_calls.contains(&theirs.calls);
        // Lost returns alone are credited again from the holders' totals. If the state lacks more,
        // the store also lost its own decisions.
        let returned = theirs.granted == book.granted && theirs.returned > book.returned;
        let later = theirs.granted > book.granted || pure && returned;
        if known && named && !later && !returned && !is_unreported {
            return;
        }
        let replaces = known && named && pure;
        let uncredited = if named { theirs.returned.saturating_sub(book.returned) } else { 0 };
        let raised =
            restore(self.params, &mut self.state, self.state_us, theirs, (replaces, uncredited));
        if !raised && !(named && (later || !known)) {
            return;
        }
        let pure = replaces || !known && !self.had_state;
        book.restored = if pure { Restored::Purely } else { Restored::Partly };
        if named {
            book.granted = book.granted.max(theirs.granted);
            book.returned = book.returned.max(theirs.returned);
        }
        book.drop_holders();
        (self.rolled_back, self.begins_lineage) = (true, named && is_new_loss);
    }

    /// Whether the store has lost a call that it answered to the holder, or that the process saw.
    fn proves_loss(&self, request: &LedgerRequest) -> bool {
        let book = &self.book;
        let entry = book.holders.get(&request.holder);
        let known_call = entry.map_or(book.dropped_call, |entry| entry.last_call);
        // Calls of a lost book say nothing about this one.
        let is_current = request.last_call >= book.calls / LINEAGE * LINEAGE;
        is_current && request.last_call > known_call || request.summary.calls > book.calls
    }

    /// Merges the request with the holder's entry by maximum (I3). If the entry has less than the
    /// holder knows, the store lost writes: repairs the entry and starts a grace period (I6).
    fn reconcile_holder(
        &mut self,
        terms: &LeaseTerms,
        request: &LedgerRequest,
        fixed: bool,
    ) -> HolderGrant {
        // Grants and returns have the time of the state. Otherwise a book whose clock stands still
        // after a step back would credit units that time has returned to a bucket.
        let state_us = self.state_us;
        let fresh = HolderGrant { oldest_grant_us: state_us, ..HolderGrant::default() };
        let known_entry = self.book.holders.get(&request.holder).copied();
        let mut entry = known_entry.unwrap_or(fresh);
        if entry.oldest_grant_us > state_us {
            // The clock stepped back, so the age is unknown.
            entry.oldest_grant_us = 0;
        }
        let behind = request.known_granted > entry.granted;
        let is_restored = self.book.restored != Restored::No;
        // Otherwise the totals belong to another ledger.
        if request.ledger == self.book.ledger {
            let proves_loss = self.proves_loss(request);
            if behind && is_restored && known_entry.is_none() {
                // The restored state contains the holder's units, and perhaps its returns.
                entry.granted = request.known_granted;
                entry.returned = entry.returned.max(request.returned);
                self.reinstated = true;
            } else if behind {
                let lost = request.known_granted - entry.granted;
                // More than the capacity plus the units given back below makes no difference.
                let back = request.returned.saturating_sub(entry.returned);
                let max = self.params.capacity().saturating_add(back);
                self.book.granted += lost;
                let lost = if fixed { lost } else { lost.min(max) };
                self.params.charge(&mut self.state, state_us, lost);
                entry.granted = request.known_granted;
                self.rolled_back = true;
            }
            // With the call, the store may have lost its own decisions.
            if behind && !self.reinstated || proves_loss {
                self.raise_to_summary(&mut entry, request);
            }
            if !fixed {
                // The time of these grants is lost, and so is the share that time has refilled.
                entry.returned = entry.returned.max(request.acknowledged);
            }
            if request.returned > entry.returned {
                let at_us = request.return_at_us.min(state_us);
                let receipt = Receipt { at_us, ..Receipt::default() };
                let units = request.returned - entry.returned;
                self.book.returned += units;
                self.params.give_back(&mut self.state, state_us, units, &receipt);
                entry.returned = request.returned;
            }
        }
        if self.rolled_back {
            let until_us = self.now_us + terms.grace_us;
            self.book.grace_until_us = self.book.grace_until_us.max(until_us);
        }
        entry
    }

    /// Raises the state of a book that has lost writes: the holder's summary also contains the
    /// store's own decisions, and perhaps returns of other holders.
    fn raise_to_summary(&mut self, entry: &mut HolderGrant, request: &LedgerRequest) {
        let (theirs, book) = (&request.summary, &mut self.book);
        let uncredited = theirs.returned.saturating_sub(book.returned);
        if restore(self.params, &mut self.state, self.state_us, theirs, (false, uncredited)) {
            book.restored = Restored::Partly;
            book.granted = book.granted.max(theirs.granted);
            book.returned = book.returned.max(theirs.returned);
            book.drop_holders();
            entry.returned = entry.returned.max(request.returned);
            (self.rolled_back, self.reinstated, self.begins_lineage) = (true, true, true);
        }
    }

    /// Removes entries of dead holders; their units stay counted in the state. In a fixed window a
    /// living holder must be able to re-assert until the window's end. So there, only entries
    /// replaced by a newer holder of the same process are removed.
    fn sweep(&mut self, terms: &LeaseTerms, request: &LedgerRequest, fixed: bool) {
        let (now_us, reclaim_us) = (self.now_us, terms.reclaim_us());
        if now_us - self.book.swept_us < reclaim_us {
            return;
        }
        let mut newest = BTreeMap::new();
        // In ascending order, so that the last holder of a process is its newest.
        newest.extend(self.book.holders.keys().map(|one| (one.process, one.number)));
        let own = newest.entry(request.holder.process).or_default();
        *own = request.holder.number.max(*own);
        let replaced = |one: &Holder| newest.get(&one.process).is_some_and(|n| one.number < *n);
        self.book.holders.retain(|one, entry| {
            *one == request.holder || entry.reclaim_at_us > now_us || fixed && !replaced(one)
        });
        self.book.swept_us = now_us;
    }

    /// Charges units, then grants them (I2). Returns their number.
    fn grant(&mut self, entry: &mut HolderGrant, left: u64, request: &LedgerRequest) -> u64 {
        let known = if request.ledger == self.book.ledger { request.known_granted } else { 0 };
        let units = self.grant_size(entry, known, left, request);
        if units > 0 {
            if entry.granted == known {
                entry.oldest_grant_us = self.state_us;
            }
            self.params.charge(&mut self.state, self.state_us, units);
            entry.granted += units;
            self.book.granted += units;
            self.book.restored = self.book.restored.charged();
        }
        units
    }

    /// Numbers the call, beyond every number that the holder has seen in this ledger.
    fn number_call(&mut self, request: &LedgerRequest) -> u64 {
        let book = &mut self.book;
        let seen = if request.ledger == book.ledger { request.summary.calls } else { 0 };
        book.calls = book.calls.max(seen) + 1;
        if self.begins_lineage {
            book.calls = book.calls.next_multiple_of(LINEAGE);
        }
        if seen < book.calls / LINEAGE * LINEAGE {
            book.reported_call = book.reported_call.max(seen);
        }
        book.calls
    }

    fn summary(&self) -> BookSummary {
        let GrantBook { granted, returned, calls, .. } = self.book;
        BookSummary { granted, returned, calls, state: figures(self.params, &self.state) }
    }

    /// The units to grant: a share of the units left, smaller with more holders. One request gets
    /// all it needs, if enough is left.
    fn grant_size(
        &self,
        entry: &HolderGrant,
        known: u64,
        left: u64,
        request: &LedgerRequest,
    ) -> u64 {
        let room = (known + request.want).saturating_sub(entry.granted);
        if request.want == 0 || room == 0 || self.now_us < self.book.grace_until_us {
            return 0;
        }
        let joins = u64::from(!self.book.holders.contains_key(&request.holder));
        let sharing = (self.book.holders.len() as u64 + joins).max(1);
        let short = (known + request.need).saturating_sub(entry.granted);
        let (room, short) =
            if short > left { (room.saturating_sub(short), 0) } else { (room, short) };
        room.min(left).min((left / (2 * sharing)).max(short).max(1))
    }
}
