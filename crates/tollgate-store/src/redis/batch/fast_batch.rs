//! Batches that a fast script can decide: their limits' state is one TAT or a count of windows.

use super::rows::{DecideReply, bytes, invalid_reply};
use super::{Batch, BatchCharge};
use crate::redis::script::msgpack;
use crate::{ChargeMode, StoreError};
use redis::Value;
use tollgate_core::{Intent, lua};

/// Requests with one charge each, grouped by key, for `decide_single.lua`. That script costs a
/// third of `decide.lua`.
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

/// Reads the reply of `decide_single.lua`. `now_us` is the batch's instant; `None`: the reply has
/// the server's time.
pub(crate) fn read_single_reply(
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
    let verdict = |charges: &[BatchCharge]| {
        let left = left.get_mut(charges.first()?.key)?;
        let admitted = *left > 0;
        *left = left.saturating_sub(1);
        Some(if admitted { b'1' } else { b'0' })
    };
    batch.live_requests().map(|(_, charges)| charges).map(verdict).collect()
}

/// Requests with any number of charges, for `decide_fast.lua`. That script costs half of
/// `decide.lua`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FastBatch {
    pub(crate) kinds: ChargeKinds,
    /// The program of `decide_fast.lua`.
    program: Vec<u8>,
}

impl FastBatch {
    /// Builds the batch; `None` if it needs `decide.lua`.
    pub(crate) fn of(batch: &Batch) -> Option<Self> {
        let mut kinds = ChargeKinds::default();
        let mut program = Vec::with_capacity(2 * batch.requests.len() + 4 * batch.charges.len());
        for (intent, charges) in batch.live_requests() {
            program.push(u8::from(intent == Intent::Take));
            program.push(u8::try_from(charges.len()).ok()?);
            for charge in charges {
                let kind = kinds.number_of(batch, charge)?;
                for number in [charge.key + 1, kind] {
                    program.extend(u16::try_from(number).ok()?.to_be_bytes());
                }
            }
        }
        Some(Self { kinds, program })
    }

    /// The script's arguments besides the keys.
    pub(crate) fn into_arguments(self) -> [Vec<u8>; 3] {
        [self.kinds.packed(), self.kinds.modes(), self.program]
    }
}

/// The kinds of a batch's charges, in the order in which they first occur. Charges of a kind have
/// equal params, cost and mode. Scripts compute the room and the charge of a kind once per call,
/// not once per charge.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChargeKinds {
    /// Params, cost and mode, in the form that `decide_single.lua` reads.
    kinds: Vec<[u64; 8]>,
    /// Index of params, cost, and whether the charge is enforced.
    seen: Vec<(usize, u64, bool)>,
}

impl ChargeKinds {
    /// The number of a charge's kind, from one. `None` if the charge needs `decide.lua`.
    pub(crate) fn number_of(&mut self, batch: &Batch, charge: &BatchCharge) -> Option<usize> {
        let is_enforced = match charge.mode {
            ChargeMode::Enforce => true,
            ChargeMode::Shadow => false,
            ChargeMode::Owe { .. } | ChargeMode::Replaced | ChargeMode::Candidate { .. } => {
                return None;
            }
        };
        // A cost of zero fits even if the key is in debt.
        if charge.penalty.is_some() || charge.cost == 0 {
            return None;
        }
        let kind = (charge.params, charge.cost, is_enforced);
        if let Some(index) = self.seen.iter().position(|one| *one == kind) {
            return Some(index + 1);
        }
        self.kinds.push(lua::charge_kind(&batch.tables.params[charge.params], charge.cost)?);
        self.seen.push(kind);
        Some(self.seen.len())
    }

    pub(crate) const fn count(&self) -> usize {
        self.seen.len()
    }

    /// Whether any limit counts in windows; the others have a TAT.
    pub(crate) fn has_windows(&self) -> bool {
        self.kinds.iter().any(|kind| kind[4] == 0)
    }

    /// Whether all kinds are enforced.
    pub(crate) fn are_enforced(&self) -> bool {
        self.seen.iter().all(|kind| kind.2)
    }

    /// For each kind, 1 if it is enforced, else 0.
    pub(crate) fn modes(&self) -> Vec<u8> {
        self.seen.iter().map(|kind| kind.2.into()).collect()
    }

    /// The kinds, packed as seven bytes per number.
    pub(crate) fn packed(&self) -> Vec<u8> {
        let seven = |number: &u64| number.to_be_bytes().into_iter().skip(1);
        self.kinds.iter().flatten().flat_map(seven).collect()
    }
}

#[cfg(test)]
mod tests;
