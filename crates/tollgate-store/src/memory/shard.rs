//! One lock's worth of cells, and what can be done to one of them.

use super::Shared;
use super::pack::{Inline, SPILLED, by_algorithm};
use super::slab::Slab;
use super::table::{Slot, Table, with_ticket};
use crate::{Answer, Charge, Origin, Ticket};
use tollgate_core::{Algorithm, Intent, Numbers, Receipt, State};

/// The cells of the keys whose hashes chose this shard.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shard {
    /// First, so that its header shares a cache line with the lock.
    pub(crate) one: Table<1>,
    pub(crate) two: Table<2>,
    pub(crate) slab: Slab,
    /// Where the search for a spilled cell to evict goes on.
    pub(crate) slab_hand: usize,
    /// Which of the store's shards this is.
    pub(crate) number: usize,
}

/// Where a key's cell is. Valid until a cell is added to or taken from the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Absent,
    Inline(usize),
    Spilled(u32),
}

/// The table of cells with `W` words, beside the slab.
pub(crate) trait Tables<const W: usize> {
    fn table(&self) -> &Table<W>;
    fn parts(&mut self) -> (&mut Table<W>, &mut Slab);
}

impl Tables<1> for Shard {
    #[inline]
    fn table(&self) -> &Table<1> {
        &self.one
    }

    #[inline]
    fn parts(&mut self) -> (&mut Table<1>, &mut Slab) {
        (&mut self.one, &mut self.slab)
    }
}

impl Tables<2> for Shard {
    #[inline]
    fn table(&self) -> &Table<2> {
        &self.two
    }

    #[inline]
    fn parts(&mut self) -> (&mut Table<2>, &mut Slab) {
        (&mut self.two, &mut self.slab)
    }
}

/// Whether cells of these numbers live among those with two words. A change of rate or tier must not move a
/// key to another table, so this depends on the algorithm alone.
pub(crate) const fn is_wide(numbers: &Numbers) -> bool {
    matches!(numbers, Numbers::TokenBucket(_))
}

impl Shard {
    pub(crate) const fn new(number: usize) -> Self {
        Self { one: Table::new(), two: Table::new(), slab: Slab::new(), slab_hand: 0, number }
    }

    pub(crate) const fn len(&self) -> usize {
        self.one.len() + self.two.len()
    }

    /// Looks the key of `tag` up.
    #[inline]
    pub(crate) fn find(&self, numbers: &Numbers, tag: u64) -> Found {
        fn typed<const W: usize>(table: &Table<W>, tag: u64) -> Found {
            match table.find(tag) {
                None => Found::Absent,
                Some(at) => match table.slot(at).words[0] {
                    word if word & SPILLED != 0 => Found::Spilled(word as u32),
                    _ => Found::Inline(at),
                },
            }
        }
        if is_wide(numbers) { typed(&self.two, tag) } else { typed(&self.one, tag) }
    }

    /// Looks the key of `tag` up, and brings back state that a leaping clock dated too far ahead of `now_us`.
    #[inline]
    pub(crate) fn find_dated(
        &mut self,
        shared: &Shared,
        tag: u64,
        charge: &Charge<'_>,
        now_us: u64,
    ) -> Found {
        let numbers = charge.numbers;
        let found = self.find(numbers, tag);
        let redated = match found {
            Found::Absent => false,
            Found::Spilled(at) => {
                let spilled = self.slab.get_mut(at);
                spilled.is_some_and(|spilled| numbers.redate(&mut spilled.state, now_us))
            }
            Found::Inline(_) => by_algorithm!(
                numbers,
                algorithm => {
                    let mut state = self.state_of(shared, algorithm, found, charge.ticket);
                    let redated = algorithm.redate(&mut state, now_us);
                    if redated {
                        self.write(shared, algorithm, found, tag, charge, state);
                    }
                    redated
                },
                else false
            ),
        };
        if redated { self.find(numbers, tag) } else { found }
    }

    /// What the limit alone says. Changes nothing.
    #[inline]
    pub(crate) fn decide(
        &self,
        shared: &Shared,
        found: Found,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
    ) -> Answer {
        let Charge { numbers, cost, .. } = *charge;
        if let Found::Spilled(at) = found {
            return self.decide_spilled(at, charge, now_us, intent);
        }
        let outcome = by_algorithm!(
            numbers,
            algorithm => {
                let state = self.state_of(shared, algorithm, found, charge.ticket);
                algorithm.decide(&state, now_us, cost, intent)
            },
            else numbers.decide(&State::New, now_us, cost, intent)
        );
        Answer { outcome, blocked: false, receipt: None, origin: Origin::State }
    }

    /// Takes `units` whether or not they fit. A cell is added if there is none, for which there must be room.
    #[inline]
    pub(crate) fn charge(
        &mut self,
        shared: &Shared,
        found: Found,
        tag: u64,
        charge: &Charge<'_>,
        now_us: u64,
        units: u64,
    ) -> Receipt {
        if let Found::Spilled(at) = found {
            return self.charge_spilled(shared, at, charge, now_us, units);
        }
        let numbers = charge.numbers;
        by_algorithm!(
            numbers,
            algorithm => {
                let mut state = self.state_of(shared, algorithm, found, charge.ticket);
                let receipt = algorithm.charge(&mut state, now_us, units);
                self.write(shared, algorithm, found, tag, charge, state);
                receipt
            },
            else {
                let at = self.spill(shared, tag, charge, State::New);
                self.charge_spilled(shared, at, charge, now_us, units)
            }
        )
    }

    /// Returns `units` of an earlier charge. What is not there needs nothing back.
    #[expect(
        clippy::too_many_arguments,
        reason = "a receipt belongs to a charge, a cell and an instant"
    )]
    pub(crate) fn give_back(
        &mut self,
        shared: &Shared,
        found: Found,
        tag: u64,
        charge: &Charge<'_>,
        now_us: u64,
        under: &Numbers,
        units: u64,
        receipt: &Receipt,
    ) {
        let numbers = charge.numbers;
        match found {
            _ if units == 0 => {}
            Found::Absent => {}
            Found::Spilled(at) => {
                if let Some(spilled) = self.slab.get_mut(at) {
                    under.give_back(&mut spilled.state, now_us, units, receipt);
                    spilled.numbers = *numbers;
                }
            }
            Found::Inline(_) => by_algorithm!(
                numbers,
                algorithm => {
                    let mut state = self.state_of(shared, algorithm, found, charge.ticket);
                    if let Some(under) = same(algorithm, under) {
                        under.give_back(&mut state, now_us, units, receipt);
                    }
                    self.write(shared, algorithm, found, tag, charge, state);
                },
                else {}
            ),
        }
    }

    /// Whether the state that `units` leave behind on a new key has to be spilled.
    pub(crate) fn spills(charge: &Charge<'_>, now_us: u64, units: u64) -> bool {
        fn typed<A: Inline<W>, const W: usize>(algorithm: &A, now_us: u64, units: u64) -> bool {
            let mut state = A::State::default();
            algorithm.charge(&mut state, now_us, units);
            algorithm.pack(&state).is_none()
        }
        charge.ticket == Ticket::default()
            || by_algorithm!(
                charge.numbers,
                algorithm => typed(algorithm, now_us, units),
                else true
            )
    }

    /// The state of an absent or inline cell, read with the numbers it was written under.
    #[inline]
    pub(super) fn state_of<A: Inline<W>, const W: usize>(
        &self,
        shared: &Shared,
        algorithm: &A,
        found: Found,
        ticket: Ticket,
    ) -> A::State
    where
        Self: Tables<W>,
    {
        let Found::Inline(at) = found else {
            return A::State::default();
        };
        let slot = self.table().slot(at);
        if slot.ticket() == ticket {
            return algorithm.unpack(slot.words);
        }
        let writer = shared.registry.get(slot.ticket()).and_then(A::of);
        writer.map_or_else(A::State::default, |writer| writer.unpack(slot.words))
    }

    #[inline]
    fn write<A: Inline<W>, const W: usize>(
        &mut self,
        shared: &Shared,
        algorithm: &A,
        found: Found,
        tag: u64,
        charge: &Charge<'_>,
        state: A::State,
    ) where
        Self: Tables<W>,
    {
        // Without a ticket nobody could read the words later.
        let words = (charge.ticket != Ticket::default()).then(|| algorithm.pack(&state)).flatten();
        let (table, _) = self.parts();
        match (words, found) {
            (Some(words), Found::Inline(at)) => table.slot_mut(at).set(charge.ticket, words),
            (Some(words), _) => {
                table.insert(Slot { tag: with_ticket(tag, charge.ticket), words });
            }
            (None, _) => {
                self.spill(shared, tag, charge, A::widen(state));
            }
        }
    }
}

/// `numbers`, if they are of the same algorithm.
fn same<'a, A: Inline<W>, const W: usize>(_: &A, numbers: &'a Numbers) -> Option<&'a A> {
    A::of(numbers)
}
