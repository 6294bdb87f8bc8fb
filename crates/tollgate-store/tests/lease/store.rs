//! The store: primaries with ledgers, replicas that lag, clocks that step.

use std::collections::{BTreeMap, VecDeque};
use tollgate_core::{Algorithm, Intent, LimitParams};
use tollgate_store::lease::{
    Holder, LeaseTerms, Ledger, LedgerReply, LedgerRequest, MarkerReading,
};

/// How much of the past a replica may lack, in writes.
const REMEMBERED: usize = 24;

type Ledgers = BTreeMap<usize, Ledger>;
/// The run that wrote it, and when.
type Mark = Option<(u64, u64)>;

/// One primary.
#[derive(Debug, Default)]
pub(crate) struct Primary {
    pub(crate) run: u64,
    mark: Mark,
    pub(crate) ledgers: Ledgers,
    past: VecDeque<(u64, Ledgers, Mark)>,
    pub(crate) ahead_us: i64,
    losses: Vec<Loss>,
}

/// What a store lost, until everybody concerned had the time to say so.
#[derive(Debug)]
pub(crate) struct Loss {
    key: usize,
    /// Of fixed windows.
    window: Option<u64>,
    ledger: u64,
    /// By holder, what it had; one who has said so again is no longer in it.
    holders: BTreeMap<Holder, (u64, u64)>,
    /// For ledgers that are gone: what of the limit was used, which one holder is enough to bring
    /// back.
    whole: Option<u64>,
    quiet_until_us: u64,
    /// Whether the key moved to a primary whose mark shows nothing of it, and nobody who knew of it
    /// has asked there yet.
    moved: bool,
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

    pub(crate) fn look(&mut self, now_us: u64) -> MarkerReading {
        let clock_us = self.clock_us(now_us);
        let (run, since_us) = *self.mark.get_or_insert((self.run, clock_us));
        let (run, since_us) = if run == self.run { (run, since_us) } else { (self.run, clock_us) };
        self.mark = Some((run, since_us));
        let name = u128::from(run) << 64 | u128::from(since_us);
        MarkerReading { run: name, age_us: clock_us.saturating_sub(since_us) }
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
        let had = before.book.as_ref().filter(|book| book.ledger == reply.ledger);
        let had = had.and_then(|book| book.holders.get(&ask.holder)).map_or(0, |h| h.granted);
        let known = if ask.ledger == reply.ledger { ask.known_granted } else { 0 };
        let granted = reply.granted.saturating_sub(had.max(known));
        (reply, self.excuses(key, ask, &reply, granted))
    }

    /// Units that went to somebody before anybody said what had been lost elsewhere are excused.
    fn excuses(
        &mut self,
        key: usize,
        ask: &LedgerRequest,
        reply: &LedgerReply,
        granted: u64,
    ) -> Vec<Excuse> {
        let mut all = Vec::new();
        for loss in self.losses.iter_mut().filter(|loss| loss.key == key) {
            if reply.rolled_back {
                loss.moved = false;
                loss.whole = None;
            }
            let held = loss.holders.get(&ask.holder).filter(|_| ask.ledger == loss.ledger);
            if held.is_some_and(|had| ask.known_granted >= had.0) {
                loss.holders.remove(&ask.holder);
            }
            let same = loss.window.is_none_or(|window| window == reply.ledger);
            if loss.moved && granted > 0 && same {
                all.push((key, loss.window, granted));
            }
        }
        all
    }

    /// A key moves away, with what was lost of it.
    pub(crate) fn take(&mut self, key: usize) -> (Option<Ledger>, Vec<Loss>) {
        let (gone, kept) = self.losses.drain(..).partition(|loss| loss.key == key);
        self.losses = kept;
        (self.ledgers.remove(&key), gone)
    }

    /// A key arrives. Its new primary's mark shows nothing of what was lost elsewhere.
    pub(crate) fn put(&mut self, key: usize, (ledger, losses): (Option<Ledger>, Vec<Loss>)) {
        self.ledgers.extend(ledger.map(|ledger| (key, ledger)));
        self.losses.extend(losses.into_iter().map(|loss| Loss { moved: true, ..loss }));
    }

    /// What was lost and not said again within the quiet time.
    pub(crate) fn unsaid(&mut self, now_us: u64) -> Vec<Excuse> {
        let mut all = Vec::new();
        self.losses.retain(|loss| {
            let open = now_us < loss.quiet_until_us;
            if !open {
                let units = loss.holders.values().map(|had| had.1).sum::<u64>();
                all.push((loss.key, loss.window, loss.whole.unwrap_or(units)));
            }
            open
        });
        all
    }

    /// Another server takes over, without the last writes, or the same one without any.
    pub(crate) fn lose(&mut self, now_us: u64, lag_us: Option<u64>, run: u64, terms: &LeaseTerms) {
        let (after, mark) = match lag_us {
            None => (Ledgers::new(), None),
            Some(lag_us) => {
                let kept = self.past.iter().rfind(|(at_us, ..)| at_us + lag_us <= now_us);
                let kept = kept.or(self.past.front());
                kept.map_or_else(|| (self.ledgers.clone(), self.mark), |(_, l, m)| (l.clone(), *m))
            }
        };
        let clock_us = self.clock_us(now_us);
        let mut losses = Vec::new();
        for (key, before) in &mut self.ledgers {
            before.expire(clock_us);
            let after = after.get(key).cloned().unwrap_or_default();
            losses.extend(loss(*key, before, &after, clock_us, now_us, terms));
        }
        self.losses.extend(losses);
        (self.ledgers, self.mark, self.run) = (after, mark, run);
        self.past.clear();
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

fn loss(
    key: usize,
    before: &Ledger,
    after: &Ledger,
    clock_us: u64,
    now_us: u64,
    terms: &LeaseTerms,
) -> Option<Loss> {
    let book = before.book.as_ref()?;
    let params = &terms.store_params;
    let fixed = matches!(params, LimitParams::FixedWindow(_));
    if fixed && book.ledger < clock_us / params.period_us() {
        return None;
    }
    let same = after.book.as_ref().filter(|after| after.ledger == book.ledger);
    let net = |held: &tollgate_store::lease::HolderGrant| held.granted - held.returned;
    let mut holders = BTreeMap::new();
    for (holder, held) in &book.holders {
        let kept = same.and_then(|after| after.holders.get(holder)).map_or(0, net);
        holders.insert(*holder, (held.granted, net(held).saturating_sub(kept)));
    }
    let used = |ledger: &Ledger| {
        let state = ledger.state.clone().unwrap_or_default();
        let left = params.decide(&state, clock_us, 0, Intent::Peek).remaining;
        params.capacity() - left.min(params.capacity())
    };
    let whole = (!fixed && same.is_none()).then(|| used(before));
    Some(Loss {
        key,
        window: fixed.then_some(book.ledger),
        ledger: book.ledger,
        holders,
        whole,
        quiet_until_us: now_us + terms.quiet_us,
        moved: false,
    })
}
