//! Requests that wait at the same moment, on their way into one script call.

pub(super) mod connection_task;
pub(super) mod queue;
pub(super) mod reply;
pub(super) mod rows;
pub(super) mod single_charge;

use super::key::KeyNamer;
use super::script::msgpack::{array, clamp};
use crate::{Charge, Mode, Request};
use ahash::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use tollgate_core::{Intent, LimitParams, Penalty, lua};

/// What one call decides. Keys, numbers and penalties stand in it once, however many requests use
/// them.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) charges: Vec<BatchCharge>,
    pub(super) requests: Vec<BatchRequest>,
    pub(super) tables: ScriptTables,
}

/// One request, under the names that the states of its charges have.
#[derive(Clone, Debug)]
pub(super) struct DecideRequest {
    pub(super) intent: Intent,
    pub(super) charges: SmallVec<[NamedCharge; 1]>,
}

/// The requests of one caller: mostly one.
pub(super) type DecideRequests = SmallVec<[DecideRequest; 1]>;

/// One charge, under the name that its state has.
#[derive(Clone, Debug)]
pub(super) struct NamedCharge {
    pub(super) name: Vec<u8>,
    pub(super) params: LimitParams,
    pub(super) cost: u64,
    pub(super) mode: Mode,
    pub(super) penalty: Option<Penalty>,
}

impl DecideRequest {
    pub(super) fn new(namer: &KeyNamer, request: &Request<'_>, now_us: u64) -> Self {
        let named = |charge: &Charge<'_>| NamedCharge::new(namer, charge, now_us);
        Self { intent: request.intent, charges: request.charges.iter().map(named).collect() }
    }
}

impl NamedCharge {
    /// `now_us` is the caller's clock: it says which windows of a calendar the script is told of.
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

/// One charge, by its places in the tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchCharge {
    pub(super) key: usize,
    pub(super) params: usize,
    pub(super) cost: u64,
    pub(super) mode: Mode,
    pub(super) penalty: Option<usize>,
}

impl BatchCharge {
    /// The mode as `decide.lua` reads it: 0 for shadow, 1 for enforced; what is owed plus 2 where
    /// it is enforced, and below 0 by one more where not.
    fn mode(&self) -> i64 {
        let units = |units: u64| clamp(units.min(u64::from(u32::MAX)));
        match self.mode {
            Mode::Shadow => 0,
            Mode::Enforce => 1,
            Mode::Owe { units: owed, enforced: true } => units(owed) + 2,
            Mode::Owe { units: owed, enforced: false } => -1 - units(owed),
        }
    }
}

/// One request: its intent, and the end of its lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchRequest {
    pub(super) intent: Intent,
    pub(super) end: usize,
    /// Whether nobody waits for it any more, so that it is not to be decided.
    pub(super) cancelled: bool,
}

/// What lines refer to.
#[derive(Debug, Default)]
pub(super) struct ScriptTables {
    pub(super) keys: Vec<Vec<u8>>,
    /// Where each key stands, found by its hash.
    key_index: HashTable<usize>,
    hashes: RandomState,
    pub(super) params: Vec<LimitParams>,
    pub(super) penalties: Vec<Penalty>,
}

impl ScriptTables {
    pub(super) fn key_index_of(&mut self, name: Vec<u8>) -> usize {
        let Self { keys, key_index: places, hashes, .. } = self;
        let hash = hashes.hash_one(&name);
        let found = places.find(hash, |place| keys[*place] == name);
        found.copied().unwrap_or_else(|| {
            let place = keys.len();
            keys.push(name);
            places.insert_unique(hash, place, |place| hashes.hash_one(&keys[*place]));
            place
        })
    }

    pub(super) fn params_index(&mut self, params: &LimitParams) -> usize {
        index_of(&mut self.params, params)
    }

    pub(super) fn penalty_index(&mut self, penalty: Option<&Penalty>) -> Option<usize> {
        penalty.map(|penalty| index_of(&mut self.penalties, penalty))
    }

    /// The numbers and the penalties, as the scripts read them.
    pub(super) fn packed(&self) -> [Vec<u8>; 2] {
        let params: Vec<_> = self.params.iter().flat_map(lua::to_lua_params).map(clamp).collect();
        let penalties = self.penalties.iter().flat_map(Penalty::to_lua_params).map(clamp);
        [array(&params), array(&penalties.collect::<Vec<_>>())]
    }
}

/// A few at most, so that looking through them costs less than hashing them.
fn index_of<T: Copy + PartialEq>(list: &mut Vec<T>, item: &T) -> usize {
    list.iter().position(|one| one == item).unwrap_or_else(|| {
        list.push(*item);
        list.len() - 1
    })
}

impl Batch {
    /// Adds a request.
    pub(super) fn push(&mut self, ask: DecideRequest) {
        for line in ask.charges {
            self.charges.push(BatchCharge {
                key: self.tables.key_index_of(line.name),
                params: self.tables.params_index(&line.params),
                cost: line.cost,
                mode: line.mode,
                penalty: self.tables.penalty_index(line.penalty.as_ref()),
            });
        }
        let end = self.charges.len();
        self.requests.push(BatchRequest { intent: ask.intent, end, cancelled: false });
    }

    /// The requests that are to be decided, each with its lines.
    pub(super) fn live_requests(&self) -> impl Iterator<Item = (Intent, &[BatchCharge])> {
        let mut start = 0;
        let all = self.requests.iter().map(move |asked| {
            let lines = &self.charges[start..asked.end];
            start = asked.end;
            (asked, lines)
        });
        all.filter(|(asked, _)| !asked.cancelled).map(|(asked, lines)| (asked.intent, lines))
    }

    /// Whether something is owed, whoever refuses.
    pub(super) fn has_debts(&self) -> bool {
        self.charges.iter().any(|line| line.mode.owed().is_some())
    }

    /// The request at `index` by itself again.
    pub(super) fn request_at(&self, index: usize) -> Option<DecideRequest> {
        let asked = self.requests.get(index)?;
        let before = index.checked_sub(1).and_then(|before| self.requests.get(before));
        let lines = self.charges.get(before.map_or(0, |before| before.end)..asked.end)?;
        let named = |line: &BatchCharge| NamedCharge {
            name: self.tables.keys[line.key].clone(),
            params: self.tables.params[line.params],
            cost: line.cost,
            mode: line.mode,
            penalty: line.penalty.map(|penalty| self.tables.penalties[penalty]),
        };
        Some(DecideRequest { intent: asked.intent, charges: lines.iter().map(named).collect() })
    }

    /// The program of `decide.lua`.
    pub(super) fn program(&self) -> Vec<u8> {
        let mut flat = Vec::with_capacity(self.requests.len() * 2 + self.charges.len() * 5);
        for (intent, lines) in self.live_requests() {
            flat.extend([i64::from(intent == Intent::Take), lines.len() as i64]);
            for line in lines {
                flat.extend([
                    line.key as i64 + 1,
                    line.params as i64 + 1,
                    clamp(line.cost),
                    line.mode(),
                    line.penalty.map_or(0, |penalty| penalty as i64 + 1),
                ]);
            }
        }
        array(&flat)
    }
}
