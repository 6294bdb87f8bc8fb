//! The store: primaries with ledgers, replicas that lag, clocks that step.

use crate::loss::{Loss, gained, held, left, loss, returned};
use std::collections::{BTreeMap, VecDeque};
use tollgate_core::algorithm::Taken;
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState};
use tollgate_store::lease::{LeaseTerms, Ledger, LedgerReply, LedgerRequest, MarkerReading};

/// How much of the past a replica may lack, in writes.
const REMEMBERED: usize = 24;

type Ledgers = BTreeMap<usize, Ledger>;
/// Units that holders had, by key, ledger and totals.
type HeldAt = BTreeMap<(usize, u64, u64, u64), u64>;
/// Units that the store had decided itself, by key, ledger and number of the call.
type DecidedAt = BTreeMap<(usize, u64, u64), u64>;
/// The run that wrote it, and when.
type Mark = Option<(u64, u64)>;

/// One primary.
#[derive(Debug, Default)]
pub(crate) struct Primary {
    pub(crate) run: u64,
    /// The server that handed over to this one, with all that it had acknowledged.
    pub(crate) predecessor: Option<u64>,
    mark: Mark,
    pub(crate) ledgers: Ledgers,
    past: VecDeque<(u64, Ledgers, Mark)>,
    pub(crate) ahead_us: i64,
    losses: Vec<Loss>,
    /// Units cancelled, by key: a summary may be older.
    cancelled: BTreeMap<usize, u64>,
    /// Units lost and not reported in time, by key: a later report may still have them.
    unreported: BTreeMap<usize, u64>,
    /// Units that it decided by itself, by key; and how many of them when the totals of the book
    /// last changed: who has seen these totals has seen those units.
    decided: BTreeMap<usize, (u64, u64)>,
    held_at: HeldAt,
    decided_at: DecidedAt,
}

/// A key on its way to another primary, with what was lost of it and what nobody saw of it.
#[derive(Debug)]
pub(crate) struct MovedKey {
    ledger: Option<Ledger>,
    losses: Vec<Loss>,
    cancelled: u64,
    unreported: u64,
    decided: (u64, u64),
    held_at: HeldAt,
    decided_at: DecidedAt,
}

/// What a store loses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lost {
    /// The writes of so many microseconds.
    Last(u64),
    All,
    /// Single keys: the books, the states, or both.
    Books,
    States,
    Keys,
}

/// Units that the bound allows on top: of which key, in which window.
pub(crate) type Excuse = (usize, Option<u64>, u64);

impl Primary {
    pub(crate) fn new(run: u64) -> Self {
        Self { run, ..Self::default() }
    }

    pub(crate) fn clock_us(&self, now_us: u64) -> u64 {
        now_us.checked_add_signed(self.ahead_us).unwrap()
    }

    /// The clock steps. Marks and books seem older after a step ahead, so that a grace period may
    /// be over before everybody has reported what was lost.
    pub(crate) fn step(&mut self, by_us: i64) {
        self.ahead_us += by_us;
        if by_us > 0 {
            for loss in &mut self.losses {
                (loss.unmarked, loss.hidden) = (true, true);
            }
        }
    }

    /// The mark, or that of another server. `claim` is such a mark and the age that it gets.
    pub(crate) fn look(
        &mut self,
        now_us: u64,
        claim: Option<(u128, u64)>,
    ) -> Result<MarkerReading, u128> {
        let clock_us = self.clock_us(now_us);
        let mark = *self.mark.get_or_insert((self.run, clock_us));
        let since_us = match claim {
            _ if mark.0 == self.run => mark.1,
            Some((foreign, age_us)) if foreign == name_of(mark) => clock_us - age_us,
            _ => return Err(name_of(mark)),
        };
        self.mark = Some((self.run, since_us));
        let age_us = clock_us.saturating_sub(since_us);
        Ok(MarkerReading { run: name_of((self.run, since_us)), age_us, replaced: None })
    }

    /// Another server takes over, with everything.
    pub(crate) fn hand_over(&mut self, run: u64) {
        self.predecessor = Some(std::mem::replace(&mut self.run, run));
    }

    /// Whether the server that wrote the mark says that this one has all that it acknowledged.
    pub(crate) fn is_handed_over(&self, foreign: u128) -> bool {
        let mark = self.mark.filter(|mark| name_of(*mark) == foreign);
        mark.is_some_and(|mark| self.predecessor == Some(mark.0))
    }

    /// The mark as it is, which another server may have written.
    pub(crate) fn mark(&self) -> Option<u128> {
        self.mark.map(name_of)
    }

    /// Where cancelled units are credited: the state of a key, as it is and as it would be without
    /// the losses.
    pub(crate) fn cancel(
        &mut self,
        key: usize,
        units: u64,
    ) -> impl Iterator<Item = &mut LimitState> {
        *self.cancelled.entry(key).or_default() += units;
        let unlost = self.losses.iter_mut().filter(move |loss| loss.key == key);
        let unlost = unlost.map(|loss| {
            loss.differs = true;
            &mut loss.unlost
        });
        unlost.chain(self.ledgers.get_mut(&key)).filter_map(|ledger| ledger.state.as_mut())
    }

    /// Answers as the script does, and says what the losses before this excuse.
    pub(crate) fn ask(
        &mut self,
        now_us: u64,
        key: usize,
        terms: &LeaseTerms,
        ask: &LedgerRequest,
        keep_past: bool,
    ) -> (LedgerReply, Vec<Excuse>) {
        let clock_us = self.clock_us(now_us);
        if keep_past {
            self.past.push_back((now_us, self.ledgers.clone(), self.mark));
            if self.past.len() > REMEMBERED {
                self.past.pop_front();
            }
        }
        let ledger = self.ledgers.entry(key).or_default();
        ledger.expire(clock_us);
        let before = ledger.clone();
        let reply = ledger.handle(clock_us, 1_000_000, terms, ask);
        let at = (key, reply.ledger, reply.summary.granted, reply.summary.returned);
        let most = self.held_at.entry(at).or_default();
        *most = held(ledger).max(*most);
        let totals = before.book.as_ref().map(|book| (book.ledger, book.granted, book.returned));
        let decided = self.decided.entry(key).or_default();
        if totals != Some((reply.ledger, reply.summary.granted, reply.summary.returned)) {
            decided.1 = decided.0;
        }
        // A lost call and a later one may have the same number.
        let at = (key, reply.ledger, reply.summary.calls);
        let least = self.decided_at.entry(at).or_insert(decided.0);
        *least = decided.0.min(*least);
        let had_book = before.book.as_ref().filter(|book| book.ledger == reply.ledger);
        let had = had_book.and_then(|book| book.holders.get(&ask.holder)).map_or(0, |h| h.granted);
        let known = if ask.ledger == reply.ledger { ask.known_granted } else { 0 };
        let granted = reply.granted.saturating_sub(had.max(known));
        let is = reply.left + granted;
        let calls = had_book.map_or(0, |book| book.calls);
        let excuses = self.excuses(now_us, key, terms, ask, (&reply, granted, is, calls));
        (reply, excuses)
    }

    /// Decides as the script for exact limits does. If the answer counts whatever was lost, what
    /// was lost and not said again is excused; else only what no mark shows.
    pub(crate) fn decide(
        &mut self,
        now_us: u64,
        key: usize,
        terms: &LeaseTerms,
        cost: u64,
        counts: bool,
    ) -> (bool, Vec<Excuse>) {
        let (clock_us, params) = (self.clock_us(now_us), &terms.store_params);
        let left = |state: &LimitState| left(params, state, clock_us);
        let ledger = self.ledgers.entry(key).or_default();
        ledger.expire(clock_us);
        let mut state = ledger.state.clone().unwrap_or_default();
        let is = left(&state);
        // The new state hides the book's copy, whatever of it was lost.
        let hides_copy = ledger.state.is_none() && ledger.book.is_some();
        let redated = params.redate(&mut state, clock_us);
        let admitted = matches!(params.take(&mut state, clock_us, cost), Some(Taken::Charged(..)));
        // A refusal writes no new state: the book's copy still counts if the state was evicted.
        if admitted || redated {
            ledger.expires_us = ledger.expires_us.max(params.idle_at_us(&state) + 1_000_000);
            ledger.state = Some(state);
        }
        if !admitted {
            return (false, Vec::new());
        }
        self.decided.entry(key).or_default().0 += cost;
        let mut excuses = Vec::new();
        for loss in self.losses.iter_mut().filter(|loss| loss.key == key) {
            // Returns that were lost too hide as many lost charges.
            let hidden = returned(&loss.unlost).saturating_sub(returned(ledger));
            let unlost = loss.unlost.state.get_or_insert_default();
            let was = left(unlost);
            let forgets = std::mem::take(&mut loss.copied);
            loss.forgotten |= forgets || hides_copy;
            (loss.unmarked, loss.hidden) = (loss.unmarked || forgets, loss.hidden || forgets);
            if counts || loss.hidden {
                excuses.push((key, loss.window, cost.saturating_sub(was)));
            }
            if !loss.said {
                loss.merged += cost.min((is + hidden).saturating_sub(was));
            } else if loss.unseen > 0 {
                loss.pending += cost;
            }
            loss.decided = true;
            loss.given += cost.saturating_sub(was);
            params.charge(unlost, clock_us, cost.min(was));
        }
        (true, excuses)
    }

    /// Units that went to somebody before anybody said what had been lost elsewhere are excused.
    fn excuses(
        &mut self,
        now_us: u64,
        key: usize,
        terms: &LeaseTerms,
        ask: &LedgerRequest,
        (reply, granted, is, calls): (&LedgerReply, u64, u64, u64),
    ) -> Vec<Excuse> {
        let clock_us = self.clock_us(now_us);
        let mut all = Vec::new();
        for loss in self.losses.iter_mut().filter(|loss| loss.key == key) {
            loss.unmarked &= !reply.rolled_back;
            // The lost state of a later window would count in an earlier one, to which a clock that
            // stepped back returns.
            let same = loss.window.is_none_or(|window| reply.ledger <= window);
            let ledger = loss.unlost.book.as_ref().map(|book| book.ledger);
            // Later words of a process are about the restored book.
            let first = loss.spoke.insert(ask.holder.process);
            let says_all = (first || reply.rolled_back)
                && ledger == Some(ask.ledger)
                && (ask.summary.granted, ask.summary.returned) >= loss.totals;
            loss.said |= says_all;
            // A holder with a new name has no entry that shows what it saw. Its summary still does,
            // until the book has had more calls.
            let is_shown = ask.last_call > 0 || ask.summary.calls > calls || reply.rolled_back;
            if says_all && is_shown {
                loss.report(self.decided_at.get(&(key, ask.ledger, ask.summary.calls)).copied());
            }
            let mut said = *ask;
            said.want = 0;
            // A summary has what holders returned since.
            let at = (key, ask.ledger, ask.summary.granted, ask.summary.returned);
            let outdated = self.held_at.get(&at).copied().unwrap_or(terms.store_params.capacity());
            if reply.rolled_back {
                loss.held = outdated.max(loss.held);
                // A later summary does not have what was returned after an earlier one.
                loss.forfeited += std::mem::take(&mut loss.credited);
            }
            let before = returned(&loss.unlost);
            let named = ledger == Some(reply.ledger) && [0, reply.ledger].contains(&ask.ledger);
            loss.differs |= !named || granted > 0;
            if !loss.differs {
                // It may be what an earlier loss left.
                loss.differs |= loss.unlost.handle(clock_us, 1_000_000, terms, &said).rolled_back;
            }
            if !reply.reinstated {
                loss.credited += returned(&loss.unlost).saturating_sub(before);
            } else {
                // The store credits nothing that it may have credited before.
                loss.forfeited += returned(&loss.unlost).saturating_sub(before);
            }
            if granted > 0 && same {
                let mut charged = granted;
                if loss.unmarked {
                    let unlost = loss.unlost.state.clone().unwrap_or_default();
                    let was = terms.store_params.decide(&unlost, clock_us, 0, Intent::Peek);
                    charged = granted.min(was.remaining);
                    all.push((key, loss.window, granted - charged));
                    loss.given += granted - charged;
                    if !loss.said {
                        loss.merged += charged.min(is.saturating_sub(was.remaining));
                    }
                }
                let params = &terms.store_params;
                let state = loss.unlost.state.get_or_insert_default();
                params.charge(state, clock_us, charged);
            }
        }
        all
    }

    /// A key moves away, with what was lost of it.
    pub(crate) fn take(&mut self, key: usize) -> MovedKey {
        let (losses, kept) = self.losses.drain(..).partition(|loss| loss.key == key);
        self.losses = kept;
        MovedKey {
            ledger: self.ledgers.remove(&key),
            losses,
            cancelled: self.cancelled.remove(&key).unwrap_or(0),
            unreported: self.unreported.remove(&key).unwrap_or(0),
            decided: self.decided.remove(&key).unwrap_or_default(),
            decided_at: self.decided_at.extract_if(.., |at, _| at.0 == key).collect(),
            held_at: self.held_at.extract_if(.., |at, _| at.0 == key).collect(),
        }
    }

    /// A key arrives. Its new primary's mark shows nothing of what was lost elsewhere.
    pub(crate) fn put(&mut self, key: usize, moved: MovedKey) {
        self.cancelled.insert(key, moved.cancelled);
        self.unreported.insert(key, moved.unreported);
        self.decided.insert(key, moved.decided);
        self.decided_at.extend(moved.decided_at);
        self.held_at.extend(moved.held_at);
        self.ledgers.extend(moved.ledger.map(|ledger| (key, ledger)));
        self.losses.extend(moved.losses.into_iter().map(|loss| Loss {
            unmarked: true,
            hidden: true,
            again: true,
            ..loss
        }));
    }

    /// What was lost and not said again within the grace period. What somebody said is not excused,
    /// and nobody is kept from what he would have without the loss.
    pub(crate) fn end_losses(
        &mut self,
        now_us: u64,
        terms: &LeaseTerms,
        stepping: bool,
    ) -> Result<Vec<Excuse>, String> {
        let clock_us = self.clock_us(now_us);
        let params = &terms.store_params;
        let left =
            |ledger: &Ledger| left(params, &ledger.state.clone().unwrap_or_default(), clock_us);
        let mut all = Vec::new();
        let (over, open) =
            self.losses.drain(..).partition::<Vec<_>, _>(|loss| now_us >= loss.grace_until_us);
        self.losses = open;
        for loss in over {
            let is = self.ledgers.get(&loss.key).map_or(params.capacity(), left);
            let was = left(&loss.unlost);
            let passed = loss.window.is_some_and(|window| window < clock_us / params.period_us());
            let more = if passed { 0 } else { is.saturating_sub(was) };
            let unsaid = loss.unseen + loss.lacked + loss.merged;
            let ledger = self.ledgers.get(&loss.key);
            let states =
                [ledger, Some(&loss.unlost)].map(|one| one.and_then(|one| one.state.clone()));
            let gained = if passed { 0 } else { gained(params, states, clock_us) };
            if stepping {
                // By a clock that steps, nobody can say what would be without the loss.
                all.push((loss.key, loss.window, gained));
                continue;
            }
            if loss.must_be_said && !loss.said && more > unsaid {
                return Err("nobody said what all of them knew".into());
            }
            if loss.said && more > unsaid && !loss.differs && !loss.forgotten {
                return Err(format!("{is} are left where {was} would be, {unsaid} were not said"));
            }
            let excused = if loss.said && !loss.forgotten { gained.min(unsaid) } else { gained };
            all.push((loss.key, loss.window, excused));
            // A book that was restored and nothing else is as it would be.
            let pure = loss.all && loss.said && !loss.differs && !loss.decided;
            let pure = pure && loss.credited == 0;
            let outdated = if pure { 0 } else { loss.held };
            let outdated = outdated + self.cancelled.get(&loss.key).copied().unwrap_or(0);
            let unreported = self.unreported.entry(loss.key).or_default();
            let outdated = outdated + *unreported;
            *unreported += more;
            if is + outdated + loss.forfeited + loss.given < was && !passed && !loss.again {
                return Err(format!("{is} are left where {was} would be, {outdated} were held"));
            }
        }
        Ok(all)
    }

    /// Another server takes over, without the last writes, or the same one forgets.
    pub(crate) fn lose(
        &mut self,
        now_us: u64,
        what: Lost,
        run: u64,
        terms: &LeaseTerms,
    ) -> Vec<Excuse> {
        let clock_us = self.clock_us(now_us);
        self.ledgers.values_mut().for_each(|ledger| ledger.expire(clock_us));
        let (mut after, mut mark) = (self.ledgers.clone(), self.mark);
        match what {
            Lost::Last(lag_us) => {
                let kept = self.past.iter().rfind(|(at_us, ..)| at_us + lag_us <= now_us);
                if let Some((_, ledgers, kept)) = kept.or(self.past.front()) {
                    (after, mark) = (ledgers.clone(), *kept);
                    // A key that has moved away since.
                    after.retain(|key, _| self.ledgers.contains_key(key));
                }
            }
            Lost::All => (after, mark) = (Ledgers::new(), None),
            Lost::Books => after.values_mut().for_each(|ledger| ledger.book = None),
            Lost::Keys => after.clear(),
            Lost::States => after.values_mut().for_each(|ledger| ledger.state = None),
        }
        // Evictions leave the mark, so nodes begin no grace period.
        let evicted = matches!(what, Lost::Books | Lost::Keys | Lost::States);
        let is_kept = |key: &usize| after.get(key) == self.ledgers.get(key);
        // What was said of a key is lost with it.
        for loss in self.losses.iter_mut().filter(|loss| !is_kept(&loss.key)) {
            (loss.said, loss.must_be_said, loss.differs) = (false, false, true);
        }
        let concerned = self.ledgers.iter().filter(|(key, _)| !evicted || !is_kept(key));
        let losses = concerned.filter_map(|(key, before)| {
            let mut loss = loss(*key, before, clock_us, now_us, terms)?;
            loss.held += after.get(key).map_or(0, held);
            if matches!(terms.store_params, LimitParams::SlidingWindow(_)) {
                // A summary raises each of the two counts by itself. Where the store kept the
                // larger count of one window, returns that it lost are not credited again.
                let kept = after.get(key).map_or(0, returned);
                loss.forfeited += returned(before).saturating_sub(kept);
            }
            loss.all = matches!(what, Lost::All);
            let copied = matches!(what, Lost::States)
                && before.book.as_ref().map(|book| &book.copy) == before.state.as_ref();
            // One after the other, both are gone.
            let both = matches!(what, Lost::Books) && before.state.is_none();
            let unmarked = both || matches!(what, Lost::Keys | Lost::States) && !copied;
            let decided = self.decided.get(key).copied().unwrap_or_default();
            (loss.decided_before, loss.unseen) = (decided.0, decided.0 - decided.1);
            Some(Loss { unmarked, hidden: unmarked, copied, ..loss })
        });
        let mut excuses = Vec::new();
        for mut loss in losses.collect::<Vec<_>>() {
            let same = |old: &&mut Loss| (old.key, old.window) == (loss.key, loss.window);
            match self.losses.iter_mut().find(same) {
                Some(old) => {
                    let state = loss.unlost.state.take().unwrap_or_default();
                    let excused = old.lose_again(loss, state, clock_us, terms, evicted);
                    excuses.push((old.key, old.window, excused));
                }
                None => self.losses.push(loss),
            }
        }
        if run != self.run {
            self.predecessor = None;
        }
        (self.ledgers, self.mark, self.run) = (after, mark, run);
        self.past.clear();
        excuses
    }

    /// Marks the losses of this instant that somebody has to make good: by key, what ledger and
    /// totals a living process has seen.
    pub(crate) fn expect_said(&mut self, until_us: u64, seen: &[(usize, u64, (u64, u64))]) {
        let now = |loss: &&mut Loss| !loss.unmarked && loss.grace_until_us == until_us;
        for loss in self.losses.iter_mut().filter(now) {
            let ledger = loss.unlost.book.as_ref().map_or(0, |book| book.ledger);
            let seen = seen.contains(&(loss.key, ledger, loss.totals));
            loss.must_be_said |= seen;
        }
    }

    /// Whether the ledgers hold what the theorem says of them, where nothing was ever lost.
    pub(crate) fn check(&self, terms: &LeaseTerms) -> Result<(), String> {
        for ledger in self.ledgers.values() {
            let Some(book) = &ledger.book else { continue };
            if let LimitParams::FixedWindow(_) = terms.store_params {
                let held: u64 = book.holders.values().map(|h| h.granted - h.returned).sum();
                if held > terms.store_params.capacity() {
                    return Err(format!("{held} are granted of {}", terms.store_params.capacity()));
                }
            }
        }
        Ok(())
    }
}

fn name_of((run, since_us): (u64, u64)) -> u128 {
    u128::from(run) << 64 | u128::from(since_us)
}
