//! Room for the cells that a request with several charges adds.

use super::decide::NoRoom;
use super::evict::RoomNeeded;
use super::locks::ChargeCell;
use super::shard::{CellPosition, Shard, is_wide};
use super::{MemoryStore, ShardContext};
use crate::Charge;
use crate::sync::Guard;

impl MemoryStore {
    /// Sends every charge that was found to have no room to its overflow cell.
    pub(super) fn move_to_overflow_cells(&self, places: &mut [ChargeCell], charges: &[Charge<'_>]) {
        for (place, charge) in places.iter_mut().zip(charges) {
            if place.overflow && place.lock == usize::MAX {
                place.address = self.addresses.overflow(charge.limit, place.address);
                self.shared.events.overflowed(charge.limit);
            }
        }
    }
}

/// Makes room for the cells that charges will add. Those that find none are marked, to be moved to
/// overflow cells.
pub(super) fn make_room<'a>(
    shared: &ShardContext,
    guards: &mut [Option<Guard<'_, Shard>>],
    places: &mut [ChargeCell],
    now_us: u64,
    takes: impl Fn(usize) -> Option<(&'a Charge<'a>, u64)>,
) -> Result<(), NoRoom> {
    let absent = |guards: &[Option<Guard<'_, Shard>>], place: &ChargeCell, charge: &Charge<'_>| {
        guards[place.lock].as_ref().is_some_and(|shard| {
            shard.find(charge.params, place.address.tag) == CellPosition::Absent
        })
    };
    let mut pinned_inline = [0; ChargeCell::INLINE_MAX];
    let pinned_heap: Vec<u64>;
    let pinned = match pinned_inline.get_mut(..places.len()) {
        Some(pinned) => {
            pinned.iter_mut().zip(&*places).for_each(|(tag, place)| *tag = place.address.tag);
            &*pinned
        }
        None => {
            pinned_heap = places.iter().map(|place| place.address.tag).collect();
            &pinned_heap[..]
        }
    };
    let mut full = false;
    for n in 0..places.len() {
        let Some((charge, _)) = takes(n) else { continue };
        if !absent(guards, &places[n], charge) {
            continue;
        }
        // Room for as many as this request could add to the same table, this one included.
        let mut want = RoomNeeded::default();
        for (m, place) in places.iter().enumerate() {
            if let Some((other, units)) = takes(m)
                && place.lock == places[n].lock
            {
                want.cells += usize::from(is_wide(other.params) == is_wide(charge.params));
                want.spilled += usize::from(Shard::spills(other, now_us, units));
            }
        }
        let place = &mut places[n];
        if let Some(shard) = &mut guards[place.lock]
            && !shard.reserve(shared, charge.params, now_us, want, pinned, place.overflow)
        {
            place.overflow = true;
            place.lock = usize::MAX;
            full = true;
        }
    }
    if full { Err(NoRoom) } else { Ok(()) }
}
