//! Batches of requests with one charge each, for limits whose state is one TAT or a count of
//! windows. Their script costs a third of `decide.lua`.

use super::Batch;
use super::charge_kinds::ChargeKinds;
use super::reply::{DecideReply, bytes};
use super::rows::invalid_reply;
use crate::StoreError;
use crate::redis::script::msgpack;
use redis::Value;
use tollgate_core::Intent;

/// A batch for `decide_single.lua`, grouped by key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SingleChargeBatch {
    pub(crate) kinds: ChargeKinds,
    /// For each key, the number of its charge kind.
    kind_of_key: Vec<u8>,
    /// For each key, its number of requests.
    requests_of_key: Vec<u8>,
}

impl SingleChargeBatch {
    /// Groups a batch by key; `None` if it needs another script.
    pub(crate) fn of(batch: &Batch) -> Option<Self> {
        let keys = batch.tables.keys.len();
        let (mut kind_of_key, mut requests_of_key) = (vec![0; keys], vec![0_u8; keys]);
        let mut kinds = ChargeKinds::default();
        for (intent, charges) in batch.live_requests() {
            let [charge] = charges else { return None };
            let kind = u8::try_from(kinds.number_of(batch, charge)?).ok()?;
            let other = kind_of_key[charge.key] != 0 && kind_of_key[charge.key] != kind;
            if intent != Intent::Take || other {
                return None;
            }
            kind_of_key[charge.key] = kind;
            requests_of_key[charge.key] = requests_of_key[charge.key].checked_add(1)?;
        }
        // A key with only cancelled requests is charged nothing, but needs a kind.
        kind_of_key.iter_mut().for_each(|kind| *kind = (*kind).max(1));
        kinds.are_enforced().then_some(Self { kinds, kind_of_key, requests_of_key })
    }

    /// The script's arguments besides the keys.
    pub(crate) fn into_arguments(self) -> [Vec<u8>; 3] {
        let unless = |same: bool, list: Vec<u8>| if same { Vec::new() } else { list };
        let one_each = self.requests_of_key.iter().all(|many| *many == 1);
        [
            self.kinds.packed(),
            unless(self.kinds.count() == 1, self.kind_of_key),
            unless(one_each, self.requests_of_key),
        ]
    }
}

/// Reads the script's reply. `now_us` is the batch's instant; `None`: the reply has the server's
/// time.
pub(crate) fn read(
    batch: &Batch,
    now_us: Option<u64>,
    reply: Value,
) -> Result<DecideReply, StoreError> {
    let read = || {
        let Value::Array(parts) = reply else { return None };
        let mut parts = parts.into_iter();
        let Some(Value::Array(values)) = parts.next() else { return None };
        let mut digits = || String::from_utf8(bytes(parts.next()?)??).ok();
        let (seconds, micros) = (digits()?, digits()?);
        let now_us = match now_us {
            Some(us) => us.min(msgpack::MOST),
            None => {
                seconds.parse::<u64>().ok()?.checked_mul(1_000_000)? + micros.parse::<u64>().ok()?
            }
        };
        let refused = match parts.next() {
            None => Vec::new(),
            Some(Value::Array(refused)) => refused,
            Some(_) => return None,
        };
        let values = values.into_iter().map(bytes).collect::<Option<_>>()?;
        let verdicts = verdicts(batch, &refused)?;
        Some(DecideReply { now_us, verdicts, values, outcomes: Vec::new() })
    };
    read().ok_or_else(invalid_reply)
}

/// The verdict of each request. The first requests of a key are admitted: all of them, unless
/// `refused` has the key, with its number of admitted requests.
fn verdicts(batch: &Batch, refused: &[Value]) -> Option<Vec<u8>> {
    let mut left = vec![u8::MAX; batch.tables.keys.len()];
    for pair in refused.chunks(2) {
        let [Value::Int(key), Value::Int(admitted)] = pair else { return None };
        let place = usize::try_from(*key).ok()?.checked_sub(1)?;
        *left.get_mut(place)? = u8::try_from(*admitted).ok()?;
    }
    let verdict = |charges: &[super::BatchCharge]| {
        let left = left.get_mut(charges.first()?.key)?;
        let admitted = *left > 0;
        *left = left.saturating_sub(1);
        Some(if admitted { b'1' } else { b'0' })
    };
    batch.live_requests().map(|(_, charges)| charges).map(verdict).collect()
}

#[cfg(test)]
mod tests;
