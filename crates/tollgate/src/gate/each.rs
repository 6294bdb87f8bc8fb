//! Several requests at once, each of them by one limit: what a connection on which commands come in rows asks.

use crate::counters::Tally;
use crate::deny_cache::Flight;
use crate::{Gate, Rules, Source};
use std::iter::once;
use tollgate_core::algorithm::Gcra;
use tollgate_core::{Algorithm, Intent, Numbers, Outcome, Rate};
use tollgate_policy::limit::OnStoreFailure;
use tollgate_policy::policy::{Selected, Selection};
use tollgate_store::{Answer, Answers, Charge, Mode, Request, Store, StoreError, Ticket};

/// Whose state that of [`Single::Own`] is: of a limit with a name that no file can give one, so that its keys never meet those of a policy.
/// It is written to Redis, so it never changes.
const OWN_LIMIT: u64 = 1_193_473_131_922_152_854;

/// A request that one limit decides.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Single<'a> {
    /// A limit of the policy, as [`Policy::select_one`](tollgate_policy::policy::Policy::select_one) found it. Where it found none, nothing applies.
    Limit {
        /// What was found.
        selection: &'a Selection,
        /// Whether admission consumes.
        intent: Intent,
    },
    /// Numbers that the caller brings along, for a key that belongs to nobody else. All such requests share their keys, whatever the numbers.
    Own {
        /// Any bytes.
        key: &'a [u8],
        /// What is allowed.
        numbers: &'a Numbers,
        /// What [`Store::enroll`] answered for these numbers, if they are used often.
        ticket: Ticket,
        /// Units to take; zero only looks.
        cost: u64,
    },
}

/// The answer to a [`Single`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decided {
    /// Whether the request may pass. A limit in shadow mode lets pass what it refuses.
    pub allowed: bool,
    /// What the limit said.
    pub outcome: Outcome,
    /// Where it came from; [`Source::None`] when no limit applied.
    pub source: Source,
}

/// Buffers that outlive a batch, so that deciding the next one allocates nothing; and the answers to the last one.
#[derive(Debug, Default)]
pub struct Desk {
    answers: Answers,
    decided: Vec<Decided>,
    /// Which request each charge is of.
    places: Vec<usize>,
    /// Always empty, here for their memory.
    charges: Vec<Charge<'static>>,
    requests: Vec<Request<'static>>,
}

impl Desk {
    /// What was decided, in the order asked.
    pub fn decided(&self) -> &[Decided] {
        &self.decided
    }
}

impl Decided {
    /// Where no limit applies.
    const NOTHING: Self =
        Self { allowed: true, outcome: Outcome::unasked(0), source: Source::None };
}

impl<S: Store> Gate<S> {
    /// Decides each of `singles` by itself, in order, and asks the store once for all of them. What the store cannot decide each limit of the
    /// policy answers as it says itself, and `otherwise` says for the caller's own numbers. The answers are in the desk.
    pub async fn each(
        &self,
        rules: &Rules,
        now_us: u64,
        singles: &[Single<'_>],
        otherwise: OnStoreFailure,
        desk: &mut Desk,
    ) {
        let Desk { answers, decided, places, .. } = desk;
        decided.clear();
        if let [single] = singles {
            return self.one(rules, now_us, single, otherwise, desk).await;
        }
        places.clear();
        let (mut flight, mut tally) = (Flight::default(), Tally::default());
        let mut charges: Vec<Charge<'_>> = emptied(std::mem::take(&mut desk.charges));
        for (place, single) in singles.iter().enumerate() {
            let known = match single.charge(rules) {
                Some(charge) => match self.refusal(rules, now_us, single, &charge, &mut flight) {
                    Some(known) => known,
                    None => {
                        charges.push(charge);
                        places.push(place);
                        // Replaced when the store has spoken.
                        Decided::NOTHING
                    }
                },
                None => Decided::NOTHING,
            };
            decided.push(known);
        }
        let mut requests: Vec<Request<'_>> = emptied(std::mem::take(&mut desk.requests));
        requests.extend(charges.iter().zip(&*places).map(|(charge, place)| Request {
            charges: std::slice::from_ref(charge),
            intent: singles[*place].intent(),
        }));
        let selected = places.iter().map(|place| singles[*place].selected(rules));
        let moment = self.deny_cache.as_ref().map(|one| one.moment(rules, selected, &charges));
        let asked = match requests.is_empty() {
            true => Ok(()),
            false => self.store.decide(now_us, &requests, answers).await,
        };
        desk.requests = emptied(requests);
        match asked {
            Ok(()) => {
                for (asked, (charge, place)) in charges.iter().zip(&*places).enumerate() {
                    let Some((allowed, [answer])) = answers.get(asked) else { continue };
                    let single = &singles[*place];
                    decided[*place] = single.decided(rules, allowed, answer);
                    if single.is_counted_here() {
                        tally.count(rules.usual(), allowed);
                    }
                    if let Some(moment) = &moment {
                        self.learn(rules, now_us, single, charge, answer, moment[asked]);
                    }
                }
                flight.land();
                self.foreign.own.add(&tally);
            }
            Err(error) => self.each_without_store(
                rules,
                now_us,
                (singles, &charges, places),
                otherwise,
                &error,
                (answers, decided),
            ),
        }
        desk.charges = emptied(charges);
    }

    /// The same for one, which is what most clients ask: no lists are made for it.
    #[inline]
    async fn one(
        &self,
        rules: &Rules,
        now_us: u64,
        single: &Single<'_>,
        otherwise: OnStoreFailure,
        Desk { answers, decided, .. }: &mut Desk,
    ) {
        decided.push(Decided::NOTHING);
        let Some(charge) = single.charge(rules) else { return };
        let mut flight = Flight::default();
        if let Some(known) = self.refusal(rules, now_us, single, &charge, &mut flight) {
            decided[0] = known;
            return;
        }
        let charges = std::slice::from_ref(&charge);
        let deny_cache = self.deny_cache.as_ref();
        let moment = deny_cache
            .map(|deny_cache| deny_cache.moment(rules, once(single.selected(rules)), charges));
        let request = Request { charges, intent: single.intent() };
        match self.store.decide(now_us, std::slice::from_ref(&request), answers).await {
            Ok(()) => {
                let Some((allowed, [answer])) = answers.get(0) else { return };
                decided[0] = single.decided(rules, allowed, answer);
                if single.is_counted_here() {
                    self.foreign.own.count_one(rules.usual(), allowed);
                }
                if let Some(moment) = &moment {
                    self.learn(rules, now_us, single, &charge, answer, moment[0]);
                }
                flight.land();
            }
            Err(error) => {
                let asked = (std::slice::from_ref(single), charges, &[0][..]);
                let said = (answers, &mut decided[..]);
                self.each_without_store(rules, now_us, asked, otherwise, &error, said);
            }
        }
    }

    /// What the deny cache knows about the request.
    #[inline]
    fn refusal<'c>(
        &'c self,
        rules: &Rules,
        now_us: u64,
        single: &Single<'_>,
        charge: &Charge<'_>,
        flight: &mut Flight<'c>,
    ) -> Option<Decided> {
        let selected = single.selected(rules).filter(|_| self.deny_cache.is_some())?;
        let (mut rows, charge) = (Vec::new(), std::slice::from_ref(charge));
        self.recall(rules, now_us, once(selected), charge, &mut rows, flight)?;
        let row = rows.first()?;
        if single.intent() == Intent::Take {
            rules.counters(selected.index).count(row);
        }
        Some(Decided { allowed: false, outcome: row.outcome, source: row.source })
    }

    fn learn(
        &self,
        rules: &Rules,
        now_us: u64,
        single: &Single<'_>,
        charge: &Charge<'_>,
        answer: &Answer,
        forgets: u64,
    ) {
        // As in `ask_store`: a replica may have answered a peek.
        if single.intent() == Intent::Take
            && let (Some(deny_cache), Some(selected)) = (&self.deny_cache, single.selected(rules))
        {
            let place = |charge: &Charge<'_>| self.store.place(charge);
            let (charge, answer) = (std::slice::from_ref(charge), std::slice::from_ref(answer));
            if answer[0].outcome.admitted {
                return deny_cache.spend(charge);
            }
            let moment = [forgets].into_iter().collect();
            deny_cache.learn(rules, now_us, once(selected), charge, answer, place, &moment);
        }
    }

    #[cold]
    fn each_without_store(
        &self,
        rules: &Rules,
        now_us: u64,
        (singles, charges, places): (&[Single<'_>], &[Charge<'_>], &[usize]),
        otherwise: OnStoreFailure,
        error: &StoreError,
        (answers, decided): (&mut Answers, &mut [Decided]),
    ) {
        self.errors.count(error);
        let mut tally = Tally::default();
        for (charge, place) in charges.iter().zip(places) {
            let single = &singles[*place];
            let verdict = single.selected(rules).map(|selected| {
                let (one, charge) = (once(selected), std::slice::from_ref(charge));
                let rows = Vec::new();
                self.without_store(rules, now_us, one, charge, single.intent(), answers, rows)
            });
            decided[*place] = match verdict.as_ref().and_then(|verdict| verdict.rows.first()) {
                Some(row) => {
                    if single.intent() == Intent::Take {
                        single.selected(rules).inspect(|one| rules.counters(one.index).count(row));
                    }
                    let allowed = verdict.as_ref().is_none_or(|verdict| verdict.allowed);
                    Decided { allowed, outcome: row.outcome, source: row.source }
                }
                None => {
                    let decided = self.own_without_store(now_us, charge, otherwise, answers);
                    if single.is_counted_here() {
                        tally.count(decided.source, decided.allowed);
                    }
                    decided
                }
            };
        }
        self.foreign.own.add(&tally);
    }

    fn own_without_store(
        &self,
        now_us: u64,
        charge: &Charge<'_>,
        otherwise: OnStoreFailure,
        answers: &mut Answers,
    ) -> Decided {
        let capacity = charge.numbers.capacity();
        let (outcome, source) = match otherwise {
            OnStoreFailure::Open => (Outcome::unasked(capacity), Source::FailOpen),
            OnStoreFailure::Closed => {
                (Outcome::withheld(capacity, super::failure::RETRY_AFTER_US), Source::FailClosed)
            }
            OnStoreFailure::Local { nodes } => {
                let share = share(charge.numbers, nodes);
                let charge = Charge { numbers: &share, ticket: Ticket::default(), ..*charge };
                let charges = std::slice::from_ref(&charge);
                let request = Request { charges, intent: Intent::Take };
                self.fallback().decide_now(now_us, &[request], answers);
                let answer = answers.get(0).and_then(|(_, rows)| rows.first());
                let outcome = answer.map_or(Outcome::unasked(0), |answer| answer.outcome);
                (outcome, Source::LocalFallback)
            }
        };
        Decided { allowed: outcome.admitted, outcome, source }
    }
}

impl<'a> Single<'a> {
    #[inline]
    fn intent(&self) -> Intent {
        match self {
            Self::Limit { intent, .. } => *intent,
            Self::Own { .. } => Intent::Take,
        }
    }

    #[inline]
    fn selected(&self, rules: &'a Rules) -> Option<Selected<'a>> {
        match self {
            Self::Limit { selection, .. } => rules.policy().selected(selection).next(),
            Self::Own { .. } => None,
        }
    }

    /// Whether it takes anything by numbers that no limit counts. As everywhere, looking counts nothing.
    #[inline]
    fn is_counted_here(&self) -> bool {
        matches!(self, Self::Own { cost: 1.., .. })
    }

    /// What the store is asked; `None` where no limit applies.
    #[inline]
    fn charge(&self, rules: &'a Rules) -> Option<Charge<'a>> {
        match *self {
            Self::Limit { .. } => self.selected(rules).map(|selected| rules.charge(&selected)),
            Self::Own { key, numbers, ticket, cost } => Some(Charge {
                limit: OWN_LIMIT,
                key,
                numbers,
                ticket,
                cost,
                mode: Mode::Enforce,
                penalty: None,
            }),
        }
    }

    /// What the store said, counted where a limit of the policy said it.
    #[inline]
    fn decided(&self, rules: &Rules, allowed: bool, answer: &Answer) -> Decided {
        let outcome = answer.outcome;
        let Some(selected) = self.selected(rules) else {
            return Decided { allowed, outcome, source: rules.usual() };
        };
        let row = rules.row(&selected, answer);
        if self.intent() == Intent::Take {
            rules.counters(selected.index).count(&row);
        }
        Decided { allowed, outcome: row.outcome, source: row.source }
    }
}

/// This node's part of the caller's numbers. A pace is divided by making its period longer, since callers' counts are small: half of one in a
/// minute is one in two.
fn share(numbers: &Numbers, nodes: u32) -> Numbers {
    let slower = |gcra: &Gcra| {
        let period_us = gcra.bucket().period_us().saturating_mul(nodes.into());
        let rate = Rate::try_new(gcra.bucket().count().into(), period_us).ok()?;
        Gcra::try_new(rate, Some(gcra.capacity() / u64::from(nodes.max(1)))).ok()
    };
    match numbers {
        Numbers::Gcra(gcra) => slower(gcra).map(Numbers::Gcra),
        _ => None,
    }
    .unwrap_or_else(|| numbers.share(nodes))
}

/// The same memory for elements that live for another time. Collecting an empty vector into one of the same layout keeps it.
fn emptied<A, B>(mut used: Vec<A>) -> Vec<B> {
    used.clear();
    used.into_iter().map(|_| unreachable!("it was emptied")).collect()
}

#[cfg(test)]
mod tests {
    use super::OWN_LIMIT;
    use tollgate_policy::state_id;

    #[test]
    fn its_name_is_none_that_a_file_can_give() {
        // A name is printable.
        assert_eq!(state_id("\0own", &[], "gcra", 0), OWN_LIMIT);
    }
}
