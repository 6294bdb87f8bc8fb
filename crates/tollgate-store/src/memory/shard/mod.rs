//! Shards: the cells behind one lock, and the operations on one cell.

pub(super) mod pack;
pub(super) mod slab;

use super::ShardContext;
use super::evict::Evictions;
use super::table::address::CellAddress;
use super::table::{Cell, CellTable, home, with_params_id};
use crate::raw::slots::Location;
use crate::sync::Guard;
use crate::{Answer, Charge, ParamsId};
use pack::{PackedState, match_packed};
use slab::Slab;
use std::ops::{Deref, DerefMut};
use tollgate_core::{Algorithm, Intent, LimitParams, LimitState, Receipt};

/// The cells behind one lock.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shard {
    /// First, so that its header shares a cache line with the lock.
    pub(crate) narrow: CellTable<1>,
    pub(crate) wide: CellTable<2>,
    pub(crate) slab: Slab,
    /// Where the next search for a spilled cell to evict starts.
    pub(crate) slab_hand: usize,
    /// The state of evictions from the two tables.
    pub(crate) evictions: [Evictions; 2],
    /// The shard's index in the store.
    pub(crate) number: usize,
}

/// A locked shard. Words that were taken out of its table are put back before it is unlocked.
#[derive(Debug)]
pub(crate) struct LockedShard<'a>(pub(super) Guard<'a, Shard>);

impl Deref for LockedShard<'_> {
    type Target = Shard;

    #[inline]
    fn deref(&self) -> &Shard {
        &self.0
    }
}

impl DerefMut for LockedShard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.0
    }
}

impl Drop for LockedShard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.narrow.release();
    }
}

/// The position of a key's cell, valid until a cell of the shard is added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellPosition {
    Absent,
    PackedState(usize),
    Spilled(u32),
}

/// Access to the table of cells with `W` words, and to the slab.
pub(crate) trait HasTable<const W: usize> {
    fn table(&self) -> &CellTable<W>;
    fn table_and_slab(&mut self) -> (&mut CellTable<W>, &mut Slab);
    /// Where threads find the array of that table.
    fn location<'a>(&self, shared: &'a ShardContext) -> &'a Location<W>;
}

macro_rules! has_table {
    ($words:literal, $table:ident) => {
        impl HasTable<$words> for Shard {
            #[inline]
            fn table(&self) -> &CellTable<$words> {
                &self.$table
            }

            #[inline]
            fn table_and_slab(&mut self) -> (&mut CellTable<$words>, &mut Slab) {
                (&mut self.$table, &mut self.slab)
            }

            fn location<'a>(&self, shared: &'a ShardContext) -> &'a Location<$words> {
                &shared.locations.$table[self.number]
            }
        }
    };
}

has_table!(1, narrow);
has_table!(2, wide);

/// Where threads find the arrays of all shards.
#[derive(Debug)]
pub(crate) struct Locations {
    pub(crate) narrow: Box<[Location<1>]>,
    pub(crate) wide: Box<[Location<2>]>,
}

impl Locations {
    /// Bytes for each shard.
    pub(crate) const SHARD_BYTES: usize = size_of::<Location<1>>() + size_of::<Location<2>>();

    pub(crate) fn new(shards: usize) -> Self {
        let narrow = (0..shards).map(|_| Location::new()).collect();
        Self { narrow, wide: (0..shards).map(|_| Location::new()).collect() }
    }

    /// Prefetches the cell at `address`, if it may be outside of the caches.
    #[inline(always)]
    pub(crate) fn prefetch(&self, address: CellAddress, params: &LimitParams) {
        let (shard, tag) = (address.shard, address.tag());
        if is_wide(params) {
            if let Some(slots) = self.wide[shard].beyond_caches() {
                slots.prefetch(|len| home::<2>(tag, len));
            }
        } else if let Some(slots) = self.narrow[shard].beyond_caches() {
            slots.prefetch(|len| home::<1>(tag, len));
        }
    }
}

/// Whether cells of these params have two words. Only the algorithm decides, since a change of rate
/// or tier must not move a key to another table.
pub(crate) const fn is_wide(params: &LimitParams) -> bool {
    matches!(params, LimitParams::TokenBucket(_))
}

impl Shard {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            narrow: CellTable::new(),
            wide: CellTable::new(),
            slab: Slab::new(),
            slab_hand: 0,
            evictions: Default::default(),
            number,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.narrow.len() + self.wide.len()
    }

    /// Finds the cell of a tag, and keeps other threads from changing it until the lock is
    /// released.
    #[inline]
    pub(crate) fn find(&mut self, params: &LimitParams, tag: u64) -> CellPosition {
        fn typed<const W: usize>(table: &mut CellTable<W>, tag: u64) -> CellPosition {
            match table.hold(tag) {
                None => CellPosition::Absent,
                Some((at, cell)) => match cell.spilled() {
                    Some(index) => CellPosition::Spilled(index),
                    None => CellPosition::PackedState(at),
                },
            }
        }
        if is_wide(params) { typed(&mut self.wide, tag) } else { typed(&mut self.narrow, tag) }
    }

    /// The answer of the limit alone. Changes nothing.
    #[inline]
    pub(crate) fn decide(
        &self,
        shared: &ShardContext,
        found: CellPosition,
        charge: &Charge<'_>,
        now_us: u64,
        intent: Intent,
    ) -> Answer {
        let Charge { params, cost, .. } = *charge;
        if let CellPosition::Spilled(at) = found {
            return self.decide_spilled(at, charge, now_us, intent);
        }
        let outcome = match_packed!(
            params,
            algorithm => {
                let state = self.state_of(shared, algorithm, found, charge.params_id);
                algorithm.decide(&state, now_us, cost, intent)
            },
            else params.decide(&LimitState::New, now_us, cost, intent)
        );
        Answer::without_receipt(outcome)
    }

    /// Charges `units`, whether or not they fit. Adds a missing cell, for which there must be room.
    #[inline]
    pub(crate) fn charge(
        &mut self,
        shared: &ShardContext,
        found: CellPosition,
        tag: u64,
        charge: &Charge<'_>,
        now_us: u64,
        units: u64,
    ) -> Receipt {
        if let CellPosition::Spilled(at) = found {
            return self.charge_spilled(shared, at, charge, now_us, units);
        }
        let params = charge.params;
        match_packed!(
            params,
            algorithm => {
                let mut state = self.state_of(shared, algorithm, found, charge.params_id);
                let receipt = algorithm.charge(&mut state, now_us, units);
                self.write(shared, algorithm, found, tag, charge, state);
                receipt
            },
            else {
                let at = self.spill(shared, tag, charge, LimitState::New);
                self.charge_spilled(shared, at, charge, now_us, units)
            }
        )
    }

    /// Gives back `units` of an earlier charge. A missing cell gets nothing.
    #[expect(
        clippy::too_many_arguments,
        reason = "a receipt belongs to a charge, a cell and an instant"
    )]
    pub(crate) fn give_back(
        &mut self,
        shared: &ShardContext,
        found: CellPosition,
        tag: u64,
        charge: &Charge<'_>,
        now_us: u64,
        charged_params: &LimitParams,
        units: u64,
        receipt: &Receipt,
    ) {
        let params = charge.params;
        match found {
            _ if units == 0 => {}
            CellPosition::Absent => {}
            CellPosition::Spilled(at) => {
                if let Some(spilled) = self.slab.get_mut(at) {
                    charged_params.give_back(&mut spilled.state, now_us, units, receipt);
                    spilled.params = *params;
                }
            }
            CellPosition::PackedState(_) => match_packed!(
                params,
                algorithm => {
                    let mut state = self.state_of(shared, algorithm, found, charge.params_id);
                    if let Some(charged) = params_of_same_algorithm(algorithm, charged_params) {
                        charged.give_back(&mut state, now_us, units, receipt);
                    }
                    self.write(shared, algorithm, found, tag, charge, state);
                },
                else {}
            ),
        }
    }

    /// Whether the state of a new key after a charge of `units` must be spilled.
    pub(crate) fn spills(charge: &Charge<'_>, now_us: u64, units: u64) -> bool {
        fn typed<A: PackedState<W>, const W: usize>(
            algorithm: &A,
            now_us: u64,
            units: u64,
        ) -> bool {
            let mut state = A::State::default();
            algorithm.charge(&mut state, now_us, units);
            algorithm.pack(&state).is_none()
        }
        charge.params_id == ParamsId::default()
            || match_packed!(
                charge.params,
                algorithm => typed(algorithm, now_us, units),
                else true
            )
    }

    /// The state of an absent or inline cell, read with the params it was written under.
    #[inline]
    pub(super) fn state_of<A: PackedState<W>, const W: usize>(
        &self,
        shared: &ShardContext,
        algorithm: &A,
        found: CellPosition,
        params_id: ParamsId,
    ) -> A::State
    where
        Self: HasTable<W>,
    {
        let CellPosition::PackedState(at) = found else {
            return A::State::default();
        };
        unpack(shared, algorithm, self.table().cell(at), params_id)
    }

    #[inline]
    pub(super) fn write<A: PackedState<W>, const W: usize>(
        &mut self,
        shared: &ShardContext,
        algorithm: &A,
        found: CellPosition,
        tag: u64,
        charge: &Charge<'_>,
        state: A::State,
    ) where
        Self: HasTable<W>,
    {
        let params_id = self.params_id_to_write::<W>(shared, found, charge);
        // Without a params id the words could not be read later.
        let words = (params_id != ParamsId::default()).then(|| algorithm.pack(&state)).flatten();
        let Some(words) = words else {
            self.spill(shared, tag, charge, A::widen(state));
            return;
        };
        if let CellPosition::PackedState(at) = found {
            let (table, _) = self.table_and_slab();
            if table.cell(at).params_id() == params_id {
                return table.set(at, words);
            }
            // A tag, and so the params id in it, is written once.
            table.remove(at);
            self.make_spare_slot::<W>(shared);
        }
        let tag = with_params_id(tag, params_id);
        self.table_and_slab().0.insert(Cell { tag, words });
    }

    /// The params id of the charge. A settlement has none, and uses the cell's if the params are
    /// the same: otherwise every settled key would be spilled.
    #[inline]
    fn params_id_to_write<const W: usize>(
        &self,
        shared: &ShardContext,
        found: CellPosition,
        charge: &Charge<'_>,
    ) -> ParamsId
    where
        Self: HasTable<W>,
    {
        if charge.params_id == ParamsId::default()
            && let CellPosition::PackedState(at) = found
            && let params_id = self.table().cell(at).params_id()
            && shared.registry.get(params_id) == Some(charge.params)
        {
            return params_id;
        }
        charge.params_id
    }
}

/// The state of an inline cell, read with the params it was written under.
#[inline]
pub(super) fn unpack<A: PackedState<W>, const W: usize>(
    shared: &ShardContext,
    algorithm: &A,
    cell: Cell<W>,
    params_id: ParamsId,
) -> A::State {
    if cell.params_id() == params_id {
        return algorithm.unpack(cell.words);
    }
    let writer = shared.registry.get(cell.params_id()).and_then(A::of);
    writer.map_or_else(A::State::default, |writer| writer.unpack(cell.words))
}

/// `params`, if they are of the same algorithm.
fn params_of_same_algorithm<'a, A: PackedState<W>, const W: usize>(
    _: &A,
    params: &'a LimitParams,
) -> Option<&'a A> {
    A::of(params)
}
