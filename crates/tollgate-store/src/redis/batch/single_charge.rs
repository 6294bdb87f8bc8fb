//! Requests with one charge each, by limits that are no more than a TAT: a script of their own
//! decides them at half the cost.

use super::Batch;
use super::reply::{DecideReply, bytes};
use super::rows::invalid_reply;
use crate::redis::script::msgpack;
use crate::{Mode, StoreError};
use redis::Value;
use tollgate_core::{Intent, lua};

/// A batch of such requests, by keys: those for different keys do not concern each other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SingleChargeBatch {
    /// Numbers and costs, as `single.lua` has them.
    charge_kinds: Vec<[u64; 6]>,
    /// Which of them each key is charged, counted from one.
    kind_of_key: Vec<u8>,
    /// How many requests each key has.
    requests_of_key: Vec<u8>,
}

impl SingleChargeBatch {
    /// The batch by keys, if it can be decided that way.
    pub(crate) fn of(batch: &Batch) -> Option<Self> {
        let keys = batch.tables.keys.len();
        let (mut way_of, mut many) = (vec![0; keys], vec![0_u8; keys]);
        let (mut charges, mut ways) = (Vec::new(), Vec::new());
        for (intent, lines) in batch.live_requests() {
            let [line] = lines else { return None };
            let takes = intent == Intent::Take && line.cost > 0;
            if !takes || line.mode != Mode::Enforce || line.penalty.is_some() {
                return None;
            }
            let charge = (line.params, line.cost);
            let place = match charges.iter().position(|one| *one == charge) {
                Some(place) => place,
                None => {
                    charges.push(charge);
                    ways.push(lua::tat_spans(&batch.tables.params[line.params], line.cost)?);
                    ways.len() - 1
                }
            };
            let way = u8::try_from(place + 1).ok()?;
            if way_of[line.key] != 0 && way_of[line.key] != way {
                return None;
            }
            way_of[line.key] = way;
            many[line.key] = many[line.key].checked_add(1)?;
        }
        // A key that nobody waits for any more is charged nothing, in whatever way.
        way_of.iter_mut().for_each(|way| *way = (*way).max(1));
        Some(Self { charge_kinds: ways, kind_of_key: way_of, requests_of_key: many })
    }

    /// What the script gets besides the keys.
    pub(crate) fn arguments(&self) -> [Vec<u8>; 3] {
        let seven = |number: &u64| number.to_be_bytes().into_iter().skip(1);
        let ways = self.charge_kinds.iter().flatten().flat_map(seven).collect();
        let unless = |same: bool, list: &Vec<u8>| if same { Vec::new() } else { list.clone() };
        let one_each = self.requests_of_key.iter().all(|many| *many == 1);
        [
            ways,
            unless(self.charge_kinds.len() == 1, &self.kind_of_key),
            unless(one_each, &self.requests_of_key),
        ]
    }
}

/// Reads what the script answered for a batch that was asked at `now_us`, or at the server's own
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

/// Of each key's requests the first ones were admitted, in the order asked: all unless the script
/// said how many.
fn verdicts(batch: &Batch, refused: &[Value]) -> Option<Vec<u8>> {
    let mut left = vec![u8::MAX; batch.tables.keys.len()];
    for pair in refused.chunks(2) {
        let [Value::Int(key), Value::Int(admitted)] = pair else { return None };
        let place = usize::try_from(*key).ok()?.checked_sub(1)?;
        *left.get_mut(place)? = u8::try_from(*admitted).ok()?;
    }
    let verdict = |lines: &[super::BatchCharge]| {
        let left = left.get_mut(lines.first()?.key)?;
        let admitted = *left > 0;
        *left = left.saturating_sub(1);
        Some(if admitted { b'1' } else { b'0' })
    };
    batch.live_requests().map(|(_, lines)| lines).map(verdict).collect()
}

#[cfg(test)]
mod tests;
