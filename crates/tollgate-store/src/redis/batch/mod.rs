//! Batches: waiting requests become one script call, and its reply becomes rows.

pub(super) mod connection_task;
pub(super) mod fast_batch;
pub(super) mod queue;
pub(super) mod rows;
pub(super) mod slot_returns;

use super::key::KeyNamer;
use super::lease::Fence;
use super::script::msgpack::{array, clamp};
use crate::{Charge, ChargeMode, Request};
use ahash::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::sync::Arc;
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Intent, LimitParams, Penalty, Rate, lua};

/// The params of a charge that refuses whatever its state is.
pub(super) const REFUSE_ALL: LimitParams =
    LimitParams::FixedWindow(FixedWindow::new(Rate::NOTHING));

/// The requests that one call decides. Keys, params and penalties that several requests use are
/// stored once.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) charges: Vec<BatchCharge>,
    pub(super) requests: Vec<BatchRequest>,
    pub(super) tables: ScriptTables,
}

/// One request, with the Redis keys of its charges.
#[derive(Clone, Debug)]
pub(super) struct DecideRequest {
    pub(super) intent: Intent,
    pub(super) charges: SmallVec<[NamedCharge; 1]>,
    /// Receives the marker of each server that decides, for leased limits that fail closed.
    pub(super) fence: Option<Arc<Fence>>,
}

/// The requests of one caller, mostly one.
pub(super) type DecideRequests = SmallVec<[DecideRequest; 1]>;

/// One charge, with the Redis key of its state.
#[derive(Clone, Debug)]
pub(super) struct NamedCharge {
    pub(super) name: Vec<u8>,
    pub(super) params: LimitParams,
    pub(super) cost: u64,
    pub(super) mode: ChargeMode,
    pub(super) penalty: Option<Penalty>,
}

impl DecideRequest {
    pub(super) fn new(namer: &KeyNamer, request: &Request<'_>, now_us: u64) -> Self {
        let named = |charge: &Charge<'_>| NamedCharge::new(namer, charge, now_us);
        let charges = request.charges.iter().map(named).collect();
        Self { intent: request.intent, charges, fence: None }
    }
}

impl NamedCharge {
    /// Names a charge. `now_us`, by the caller's clock, selects the calendar windows for the
    /// script.
    pub(super) fn new(namer: &KeyNamer, charge: &Charge<'_>, now_us: u64) -> Self {
        let Charge { limit, key, params, cost, mode, penalty, .. } = *charge;
        Self {
            name: namer.state_key(limit, key, params),
            params: params.resolve_calendar(now_us),
            cost,
            mode,
            penalty: penalty.copied(),
        }
    }
}

/// One charge, with indexes into the tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchCharge {
    pub(super) key: usize,
    pub(super) params: usize,
    pub(super) cost: u64,
    pub(super) mode: ChargeMode,
    pub(super) penalty: Option<usize>,
}

impl BatchCharge {
    /// The mode as `decide.lua` reads it: 0 shadow, 1 enforced, `units + 2` an enforced debt,
    /// `-1 - units` a debt that is not enforced, `2^33` replaced, `-2^33` a candidate, `-2^34` a
    /// candidate that is not enforced.
    fn mode(&self) -> i64 {
        let units = |units: u64| clamp(units.min(u64::from(u32::MAX)));
        match self.mode {
            ChargeMode::Shadow => 0,
            ChargeMode::Enforce => 1,
            ChargeMode::Owe { units: owed, enforced: true } => units(owed) + 2,
            ChargeMode::Owe { units: owed, enforced: false } => -1 - units(owed),
            ChargeMode::Replaced => 1 << 33,
            ChargeMode::Candidate { enforced: true } => -(1 << 33),
            ChargeMode::Candidate { enforced: false } => -(1 << 34),
        }
    }
}

/// One request: its intent, and the end of its charges.
#[derive(Clone, Debug)]
pub(super) struct BatchRequest {
    pub(super) intent: Intent,
    pub(super) end: usize,
    /// Whether the caller is gone, so that the request must not be decided.
    pub(super) cancelled: bool,
    fence: Option<Arc<Fence>>,
}

/// The keys, params and penalties that charges refer to.
#[derive(Debug, Default)]
pub(super) struct ScriptTables {
    pub(super) keys: Vec<Vec<u8>>,
    /// Indexes into `keys`, by hash.
    key_index: HashTable<usize>,
    hashes: RandomState,
    pub(super) params: Vec<LimitParams>,
    pub(super) penalties: Vec<Penalty>,
}

impl ScriptTables {
    pub(super) fn key_index_of(&mut self, name: Vec<u8>) -> usize {
        let Self { keys, key_index, hashes, .. } = self;
        let hash = hashes.hash_one(&name);
        let found = key_index.find(hash, |index| keys[*index] == name);
        found.copied().unwrap_or_else(|| {
            let index = keys.len();
            keys.push(name);
            key_index.insert_unique(hash, index, |index| hashes.hash_one(&keys[*index]));
            index
        })
    }

    pub(super) fn params_index(&mut self, params: &LimitParams) -> usize {
        index_of(&mut self.params, params)
    }

    pub(super) fn penalty_index(&mut self, penalty: Option<&Penalty>) -> Option<usize> {
        penalty.map(|penalty| index_of(&mut self.penalties, penalty))
    }

    /// The params and the penalties, packed for the scripts.
    pub(super) fn packed(&self) -> [Vec<u8>; 2] {
        let params: Vec<_> = self.params.iter().flat_map(lua::to_lua_params).map(clamp).collect();
        let penalties = self.penalties.iter().flat_map(Penalty::to_lua_params).map(clamp);
        [array(&params), array(&penalties.collect::<Vec<_>>())]
    }
}

/// The index of an item, added if new. Lists are short, so a scan costs less than hashing.
fn index_of<T: Copy + PartialEq>(list: &mut Vec<T>, item: &T) -> usize {
    list.iter().position(|one| one == item).unwrap_or_else(|| {
        list.push(*item);
        list.len() - 1
    })
}

impl Batch {
    pub(super) fn push(&mut self, request: DecideRequest) {
        for charge in request.charges {
            self.charges.push(BatchCharge {
                key: self.tables.key_index_of(charge.name),
                params: self.tables.params_index(&charge.params),
                cost: charge.cost,
                mode: charge.mode,
                penalty: self.tables.penalty_index(charge.penalty.as_ref()),
            });
        }
        let end = self.charges.len();
        let DecideRequest { intent, fence, .. } = request;
        self.requests.push(BatchRequest { intent, end, cancelled: false, fence });
    }

    /// The fences of the batch's requests.
    pub(super) fn fences(&self) -> impl Iterator<Item = &Arc<Fence>> {
        self.requests.iter().filter_map(|request| request.fence.as_ref())
    }

    /// The requests that are not cancelled, with their charges.
    pub(super) fn live_requests(&self) -> impl Iterator<Item = (Intent, &[BatchCharge])> {
        let mut start = 0;
        let all = self.requests.iter().map(move |request| {
            let charges = &self.charges[start..request.end];
            start = request.end;
            (request, charges)
        });
        let live = all.filter(|(request, _)| !request.cancelled);
        live.map(|(request, charges)| (request.intent, charges))
    }

    /// Whether a charge is a debt or a candidate, which only `decide.lua` supports.
    pub(super) fn has_special_modes(&self) -> bool {
        let is_special = |charge: &BatchCharge| {
            matches!(
                charge.mode,
                ChargeMode::Owe { .. } | ChargeMode::Replaced | ChargeMode::Candidate { .. }
            )
        };
        self.charges.iter().any(is_special)
    }

    /// The request at `index`, taken out of the tables.
    pub(super) fn request_at(&self, index: usize) -> Option<DecideRequest> {
        let request = self.requests.get(index)?;
        let before = index.checked_sub(1).and_then(|before| self.requests.get(before));
        let charges = self.charges.get(before.map_or(0, |before| before.end)..request.end)?;
        let charges = charges.iter().map(|charge| self.named(charge)).collect();
        Some(DecideRequest { intent: request.intent, charges, fence: request.fence.clone() })
    }

    /// A charge, taken out of the tables.
    fn named(&self, charge: &BatchCharge) -> NamedCharge {
        NamedCharge {
            name: self.tables.keys[charge.key].clone(),
            params: self.tables.params[charge.params],
            cost: charge.cost,
            mode: charge.mode,
            penalty: charge.penalty.map(|penalty| self.tables.penalties[penalty]),
        }
    }

    /// The program of `decide.lua`.
    pub(super) fn program(&self) -> Vec<u8> {
        let mut flat = Vec::with_capacity(self.requests.len() * 2 + self.charges.len() * 5);
        for (intent, charges) in self.live_requests() {
            flat.extend([i64::from(intent == Intent::Take), charges.len() as i64]);
            for charge in charges {
                flat.extend([
                    charge.key as i64 + 1,
                    charge.params as i64 + 1,
                    clamp(charge.cost),
                    charge.mode(),
                    charge.penalty.map_or(0, |penalty| penalty as i64 + 1),
                ]);
            }
        }
        array(&flat)
    }
}
