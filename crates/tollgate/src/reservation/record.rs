//! The record of a reservation, so that any node can end it, even after a reload.
//!
//! A record has the names and parameters of limits. Only the store knows the keys.

use super::ReservationEnd;
use crate::rules::store_mode;
use crate::settlement::settle;
use std::sync::Arc;
use tollgate_core::{LimitParams, Penalty, Receipt, lua, push_varint, take_varint};
use tollgate_policy::limit::{Limit, Mode, Selector};
use tollgate_store::Settlement;

/// The charge of one limit, to be settled later.
#[derive(Clone, Debug)]
pub(crate) struct ReservedCharge {
    /// The limit. A decoded record has only the fields that a row shows.
    pub(crate) limit: Arc<Limit>,
    pub(crate) params: LimitParams,
    /// The units of a request with cost one.
    pub(crate) units_per_cost: u64,
    /// Whether the limit admitted. A shadow limit that would have refused charged nothing.
    pub(crate) taken: bool,
    /// Units charged.
    pub(crate) charged: u64,
    /// The receipt; `None` if nothing can be given back.
    pub(crate) receipt: Option<Receipt>,
}

/// The version of the format: nodes of another version may read the record.
const VERSION: u64 = 1;

impl ReservedCharge {
    /// The effect of `end` on the limit's state.
    pub(super) fn settlement(&self, end: ReservationEnd) -> Settlement {
        Settlement {
            params: self.params,
            cost: self.units_per_cost,
            mode: store_mode(&self.limit),
            penalty: self.limit.penalty,
            change: if self.taken {
                let cost = self.units_per_cost.saturating_mul(end.cost());
                settle(&self.params, self.receipt, self.charged, cost)
            } else {
                settle(&self.params, None, 0, 0)
            },
        }
    }
}

/// Encodes the note of a record in the fallback store, which only this process reads.
/// `has_stored` says whether the store has a record of the same reservation.
pub(super) fn encode_local<'e>(
    entries: impl ExactSizeIterator<Item = &'e ReservedCharge>,
    has_stored: bool,
) -> Vec<u8> {
    let mut out = vec![u8::from(has_stored)];
    encode_into(&mut out, entries);
    out
}

/// Decodes the note of a record in the fallback store.
pub(super) fn decode_local(note: &[u8]) -> Option<(Vec<ReservedCharge>, bool)> {
    let (has_stored, entries) = note.split_first()?;
    Some((decode(entries)?, *has_stored == 1))
}

pub(super) fn encode(entries: &[ReservedCharge]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_into(&mut out, entries.iter());
    out
}

fn encode_into<'e>(out: &mut Vec<u8>, entries: impl ExactSizeIterator<Item = &'e ReservedCharge>) {
    push_varint(out, VERSION);
    push_varint(out, entries.len() as u64);
    for entry in entries {
        let limit = &*entry.limit;
        push_varint(out, limit.name.len() as u64);
        out.extend_from_slice(limit.name.as_bytes());
        let bits = [limit.mode == Mode::Shadow, limit.disclose, entry.taken];
        let more = [entry.receipt.is_some(), limit.penalty.is_some(), limit.selector.is_hidden()];
        let is_shared = entry.receipt.is_some_and(|receipt| receipt.is_shared);
        let bits = bits.into_iter().chain(more).chain([is_shared]).rev();
        push_varint(out, bits.fold(0, |all, bit| all << 1 | u64::from(bit)));
        push_varint(out, entry.units_per_cost);
        push_varint(out, entry.charged);
        let mut push = |number| push_varint(out, number);
        lua::encode_params(&entry.params).into_iter().for_each(&mut push);
        if let Some(Receipt { cost, at_us, mark_us, mark_fraction, .. }) = entry.receipt {
            [cost, at_us, mark_us, mark_fraction.into()].into_iter().for_each(&mut push);
        }
        if let Some(penalty) = &limit.penalty {
            penalty.to_lua_params().into_iter().for_each(&mut push);
        }
    }
}

/// Decodes a record; `None` if this version cannot read it.
pub(super) fn decode(mut bytes: &[u8]) -> Option<Vec<ReservedCharge>> {
    let rest = &mut bytes;
    if take_varint(rest)? != VERSION {
        return None;
    }
    let count = take_varint(rest)?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(take_varint(rest)?).ok()?;
        let (name, after) = rest.split_at_checked(length)?;
        *rest = after;
        let mut limit = Limit::new(str::from_utf8(name).ok()?, &[], None);
        let bits = take_varint(rest)?;
        let bit = |index: u32| bits >> index & 1 == 1;
        limit.mode = if bit(0) { Mode::Shadow } else { Mode::Enforce };
        limit.disclose = bit(1);
        if bit(5) {
            // Rows of the fleet and of candidates are not shown, so their original selectors do not
            // matter.
            limit.selector = Selector::Class(0);
        }
        let [units_per_cost, charged] = take_varints(rest)?;
        let params = lua::decode_params(take_varints(rest)?)?;
        let mut receipt = None;
        if bit(3) {
            let [cost, at_us, mark_us, fraction] = take_varints(rest)?;
            let mark_fraction = u32::try_from(fraction).ok()?;
            receipt = Some(Receipt { cost, at_us, mark_us, mark_fraction, is_shared: bit(6) });
        }
        if bit(4) {
            let [after, block_us, factor_milli, max_us] = take_varints(rest)?;
            let after = u32::try_from(after).ok()?;
            limit.penalty = Some(Penalty::try_new(after, block_us, factor_milli, max_us).ok()?);
        }
        let (limit, taken) = (Arc::new(limit), bit(2));
        entries.push(ReservedCharge { limit, params, units_per_cost, taken, charged, receipt });
    }
    rest.is_empty().then_some(entries)
}

fn take_varints<const N: usize>(bytes: &mut &[u8]) -> Option<[u64; N]> {
    let mut params = [0; N];
    for number in &mut params {
        *number = take_varint(bytes)?;
    }
    Some(params)
}

#[cfg(test)]
mod tests;
