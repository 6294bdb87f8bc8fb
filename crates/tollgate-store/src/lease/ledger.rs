//! The store's side, as `ledger.lua` has it: for the simulator, and to be read beside it.

use super::{Holder, LeaseTerms, LedgerReply, LedgerRequest};
use std::collections::BTreeMap;
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState, Receipt};

/// What the store has for one limit and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The limit's state, as a store that decides directly keeps it: what processes hold counts as
    /// used.
    pub state: Option<LimitState>,
    /// The end of an operator's block.
    pub block_us: u64,
    /// Who holds what; `None` where it expired or was lost.
    pub book: Option<GrantBook>,
    /// When both are dropped, by the store's clock.
    pub expires_us: u64,
}

/// Who holds what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantBook {
    /// The latest instant seen.
    pub last_us: u64,
    /// The number of the window, or when the ledger was begun.
    pub ledger: u64,
    /// Until when nothing is granted.
    pub quiet_until_us: u64,
    /// When the dead were last looked for.
    pub swept_us: u64,
    /// When the book was begun, in whichever ledger: what is older than the store's last loss is
    /// complete.
    pub begun_us: u64,
    /// Until when somebody was told that the ledger is kept.
    pub kept_until_us: u64,
    /// A copy of the state, in case that one alone is lost.
    pub copy: LimitState,
    /// By holder.
    pub holders: BTreeMap<Holder, HolderGrant>,
}

/// What one holder has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HolderGrant {
    /// Units granted, cumulative.
    pub granted: u64,
    /// Units returned, cumulative.
    pub returned: u64,
    /// When the oldest units were granted that the holder may not know of.
    pub oldest_grant_us: u64,
    /// When it was last heard.
    pub seen_us: u64,
    /// When it can be forgotten, by the lifetime that it has itself: others may have another.
    pub reclaim_at_us: u64,
}

/// One call, with what it has found out so far.
struct LedgerCall<'a> {
    params: &'a LimitParams,
    state: LimitState,
    now_us: u64,
    book: GrantBook,
    rolled_back: bool,
}

impl Ledger {
    /// Drops what has expired by the store's clock.
    pub fn expire(&mut self, raw_us: u64) {
        if raw_us >= self.expires_us {
            *self = Self::default();
        }
    }

    /// What the script does. `raw_us` is the store's clock.
    pub fn handle(
        &mut self,
        raw_us: u64,
        spare_us: u64,
        terms: &LeaseTerms,
        ask: &LedgerRequest,
    ) -> LedgerReply {
        let params = &terms.store_params;
        let period_us = params.period_us();
        let fixed = matches!(params, LimitParams::FixedWindow(_));
        let windowed = fixed || matches!(params, LimitParams::SlidingWindow(_));
        let known_book = self.book.is_some();
        let mut call = self.load(raw_us, terms, windowed);
        call.select_ledger(known_book, fixed.then(|| call.now_us / period_us), ask);
        let now_us = call.now_us;
        let mut held = call.reconcile_holder(terms, ask, fixed);
        call.sweep(terms, ask, fixed);

        let blocked = now_us < self.block_us;
        let mut left = if blocked { 0 } else { call.left() };
        let current = ask.ledger == call.book.ledger;
        let known = if current { ask.known_granted } else { 0 };
        let units = call.grant_size(&held, known, left, ask);
        if units > 0 {
            if held.granted == known {
                held.oldest_grant_us = now_us;
            }
            params.charge(&mut call.state, now_us, units);
            held.granted += units;
            left -= units;
        }
        (held.seen_us, held.reclaim_at_us) = (now_us, now_us + terms.reclaim_us());
        call.book.holders.insert(ask.holder, held);

        let idle_us = params.idle_at_us(&call.state).max(self.block_us);
        let windows_us = if windowed { 2 * period_us } else { 0 };
        let quiet_us = call.book.quiet_until_us.saturating_sub(now_us);
        let kept_us = idle_us.saturating_sub(now_us).max(windows_us).max(quiet_us);
        // Never for less than others were told, who may have longer leases.
        call.book.kept_until_us =
            call.book.kept_until_us.max(now_us + kept_us + terms.reclaim_us());
        let kept_us = call.book.kept_until_us - now_us;
        let mut usable_us =
            terms.lifetime_us.saturating_sub(now_us.saturating_sub(held.oldest_grant_us));
        if fixed {
            usable_us = usable_us.min(period_us - now_us % period_us);
        }
        let shown = params.decide(&call.state, now_us, ask.need.max(1), Intent::Peek);
        let retry_after_us = match (blocked, shown.retry_after_us) {
            (true, own) => Some((self.block_us - now_us).max(own.unwrap_or(0))),
            (false, own) => own,
        };
        let reply = LedgerReply {
            ledger: call.book.ledger,
            granted: held.granted,
            returned: held.returned,
            oldest_grant_us: held.oldest_grant_us,
            usable_us,
            quiet_us,
            left,
            kept_us,
            age_us: now_us.saturating_sub(call.book.begun_us),
            rolled_back: call.rolled_back,
            retry_after_us,
            reset_after_us: shown.reset_after_us,
        };
        call.book.last_us = now_us;
        call.book.copy = call.state.clone();
        self.state = Some(call.state);
        self.book = Some(call.book);
        self.expires_us = raw_us + kept_us.div_ceil(1_000) * 1_000 + spare_us;
        reply
    }

    /// The latest instant seen counts, unless the clock stepped back by more than a window. Takes
    /// state and book, which the end of the call puts back: there may be a thousand holders in it.
    fn load<'a>(&mut self, raw_us: u64, terms: &'a LeaseTerms, windowed: bool) -> LedgerCall<'a> {
        let params = &terms.store_params;
        let copy = |book: &GrantBook| book.copy.clone();
        let state = self.state.take().or_else(|| self.book.as_ref().map(copy));
        let mut state = state.unwrap_or_default();
        params.redate(&mut state, raw_us);
        let mut book = self.book.take().unwrap_or_else(|| GrantBook {
            last_us: 0,
            ledger: 0,
            quiet_until_us: 0,
            swept_us: 0,
            begun_us: 0,
            kept_until_us: 0,
            copy: LimitState::default(),
            holders: BTreeMap::new(),
        });
        let mut now_us = raw_us.max(book.last_us);
        if windowed {
            let period_us = params.period_us();
            if book.last_us > raw_us + period_us {
                // Where the state is re-dated to: at the beginning of a window nothing has faded
                // yet.
                now_us = (raw_us / period_us + 1) * period_us;
                book.quiet_until_us = book.quiet_until_us.min(now_us + terms.quiet_us);
                book.swept_us = book.swept_us.min(now_us);
                book.begun_us = book.begun_us.min(now_us);
                book.kept_until_us = 0;
            }
            let index = match &state {
                LimitState::FixedWindow(state) => state.index,
                LimitState::SlidingWindow(state) => state.index,
                _ => 0,
            };
            now_us = now_us.max(index * period_us);
        }
        LedgerCall { params, state, now_us, book, rolled_back: false }
    }
}

impl LedgerCall<'_> {
    fn left(&self) -> u64 {
        self.params.decide(&self.state, self.now_us, 0, Intent::Peek).remaining
    }

    fn restart(&mut self, ledger: u64) {
        self.book.holders.clear();
        self.book.ledger = ledger;
        self.book.swept_us = self.now_us;
    }

    /// Nothing is granted before time has returned it: whatever was granted in the ledger that is
    /// lost, the limit holds.
    fn exhaust(&mut self) {
        let left = self.left();
        self.params.charge(&mut self.state, self.now_us, left);
        self.rolled_back = true;
    }

    /// Which ledger it is: that of the window, or the one begun when the key was last unknown.
    fn select_ledger(&mut self, known: bool, window: Option<u64>, ask: &LedgerRequest) {
        if !known {
            self.book.begun_us = self.now_us;
        }
        if let Some(index) = window {
            if !known || self.book.ledger < index {
                self.restart(index);
            }
            self.book.ledger = index;
        } else if !known {
            self.restart(self.now_us);
            if ask.ledger != 0 {
                self.exhaust();
            }
        } else if ask.ledger != 0 && ask.ledger != self.book.ledger {
            self.exhaust();
        }
    }

    /// What the holder has: it knows best what it was granted, and the store what it may not have
    /// heard of.
    fn reconcile_holder(
        &mut self,
        terms: &LeaseTerms,
        ask: &LedgerRequest,
        fixed: bool,
    ) -> HolderGrant {
        let fresh = HolderGrant { oldest_grant_us: self.now_us, ..HolderGrant::default() };
        let mut held = self.book.holders.get(&ask.holder).copied().unwrap_or(fresh);
        if held.oldest_grant_us > self.now_us {
            // The clock stepped back, so there is no telling how old they are.
            held.oldest_grant_us = 0;
        }
        if ask.ledger == self.book.ledger {
            if ask.known_granted > held.granted {
                let lost = ask.known_granted - held.granted;
                // More than the limit makes no difference, on top of what is given back at once.
                let back = ask.returned.saturating_sub(held.returned);
                let most = self.params.capacity().saturating_add(back);
                let lost = if fixed { lost } else { lost.min(most) };
                self.params.charge(&mut self.state, self.now_us, lost);
                held.granted = ask.known_granted;
                self.rolled_back = true;
            }
            if ask.returned > held.returned {
                let at_us = ask.return_at_us.min(self.now_us);
                let receipt = Receipt { at_us, ..Receipt::default() };
                let units = ask.returned - held.returned;
                self.params.give_back(&mut self.state, self.now_us, units, &receipt);
                held.returned = ask.returned;
            }
        }
        if self.rolled_back {
            let until_us = self.now_us + terms.quiet_us;
            self.book.quiet_until_us = self.book.quiet_until_us.max(until_us);
        }
        held
    }

    /// Forgets processes that died. What they may have spent stays counted in the state. In a fixed
    /// window a living one has to be able to say until its end what it was granted, so that only
    /// those are forgotten in whose place the same process holds something else by now.
    fn sweep(&mut self, terms: &LeaseTerms, ask: &LedgerRequest, fixed: bool) {
        let (now_us, reclaim_us) = (self.now_us, terms.reclaim_us());
        if now_us - self.book.swept_us < reclaim_us {
            return;
        }
        let mut newest = BTreeMap::new();
        // In ascending order, so that the last of a process is its newest.
        newest.extend(self.book.holders.keys().map(|one| (one.process, one.number)));
        let own = newest.entry(ask.holder.process).or_default();
        *own = ask.holder.number.max(*own);
        let replaced = |one: &Holder| newest.get(&one.process).is_some_and(|n| one.number < *n);
        self.book.holders.retain(|one, held| {
            *one == ask.holder || held.reclaim_at_us > now_us || fixed && !replaced(one)
        });
        self.book.swept_us = now_us;
    }

    /// How much to grant: less of what is left the more share it, and what one request needs if
    /// there is so much.
    fn grant_size(&self, held: &HolderGrant, known: u64, left: u64, ask: &LedgerRequest) -> u64 {
        let room = (known + ask.want).saturating_sub(held.granted);
        if ask.want == 0 || room == 0 || self.now_us < self.book.quiet_until_us {
            return 0;
        }
        let joins = u64::from(!self.book.holders.contains_key(&ask.holder));
        let sharing = (self.book.holders.len() as u64 + joins).max(1);
        let short = (known + ask.need).saturating_sub(held.granted);
        let (room, short) =
            if short > left { (room.saturating_sub(short), 0) } else { (room, short) };
        room.min(left).min((left / (2 * sharing)).max(short).max(1))
    }
}
