//! Requests that wait at the same moment, on their way into one script call.

use super::key::Namer;
use super::pack::{array, clamp};
use crate::{Charge, Mode, Request};
use ahash::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use tollgate_core::{Intent, Numbers, Penalty, lua};

/// What one call decides. Keys, numbers and penalties stand in it once, however many requests use them.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) lines: Vec<Line>,
    pub(super) requests: Vec<Asked>,
    pub(super) tables: Tables,
}

/// One request, under the names that the states of its charges have.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) intent: Intent,
    pub(super) lines: SmallVec<[Named; 1]>,
}

/// The requests of one caller: mostly one.
pub(super) type Asks = SmallVec<[Ask; 1]>;

/// One charge, under the name that its state has.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) name: Vec<u8>,
    pub(super) numbers: Numbers,
    pub(super) cost: u64,
    pub(super) mode: Mode,
    pub(super) penalty: Option<Penalty>,
}

impl Ask {
    pub(super) fn new(namer: &Namer, request: &Request<'_>, now_us: u64) -> Self {
        let named = |charge: &Charge<'_>| Named::new(namer, charge, now_us);
        Self { intent: request.intent, lines: request.charges.iter().map(named).collect() }
    }
}

impl Named {
    /// `now_us` is the caller's clock: it says which windows of a calendar the script is told of.
    pub(super) fn new(namer: &Namer, charge: &Charge<'_>, now_us: u64) -> Self {
        let Charge { limit, key, numbers, cost, mode, penalty, .. } = *charge;
        Self {
            name: namer.name(limit, key, numbers),
            numbers: numbers.at(now_us),
            cost,
            mode,
            penalty: penalty.copied(),
        }
    }
}

/// One charge, by its places in the tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) key: usize,
    pub(super) numbers: usize,
    pub(super) cost: u64,
    pub(super) mode: Mode,
    pub(super) penalty: Option<usize>,
}

impl Line {
    /// The mode as `decide.lua` reads it: 0 for shadow, 1 for enforced; what is owed plus 2 where it is enforced, and below 0 by one more where not.
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
pub(super) struct Asked {
    pub(super) intent: Intent,
    pub(super) end: usize,
    /// Whether nobody waits for it any more, so that it is not to be decided.
    pub(super) gone: bool,
}

/// What lines refer to.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) keys: Vec<Vec<u8>>,
    /// Where each key stands, found by its hash.
    places: HashTable<usize>,
    hashes: RandomState,
    pub(super) numbers: Vec<Numbers>,
    pub(super) penalties: Vec<Penalty>,
}

impl Tables {
    pub(super) fn key(&mut self, name: Vec<u8>) -> usize {
        let Self { keys, places, hashes, .. } = self;
        let hash = hashes.hash_one(&name);
        let found = places.find(hash, |place| keys[*place] == name);
        found.copied().unwrap_or_else(|| {
            let place = keys.len();
            keys.push(name);
            places.insert_unique(hash, place, |place| hashes.hash_one(&keys[*place]));
            place
        })
    }

    pub(super) fn numbers(&mut self, numbers: &Numbers) -> usize {
        place_of(&mut self.numbers, numbers)
    }

    pub(super) fn penalty(&mut self, penalty: Option<&Penalty>) -> Option<usize> {
        penalty.map(|penalty| place_of(&mut self.penalties, penalty))
    }

    /// The numbers and the penalties, as the scripts read them.
    pub(super) fn packed(&self) -> [Vec<u8>; 2] {
        let numbers: Vec<_> = self.numbers.iter().flat_map(lua::mirrored).map(clamp).collect();
        let penalties = self.penalties.iter().flat_map(Penalty::mirrored).map(clamp);
        [array(&numbers), array(&penalties.collect::<Vec<_>>())]
    }
}

/// A few at most, so that looking through them costs less than hashing them.
fn place_of<T: Copy + PartialEq>(list: &mut Vec<T>, item: &T) -> usize {
    list.iter().position(|one| one == item).unwrap_or_else(|| {
        list.push(*item);
        list.len() - 1
    })
}

impl Batch {
    /// Adds a request.
    pub(super) fn push(&mut self, ask: Ask) {
        for line in ask.lines {
            self.lines.push(Line {
                key: self.tables.key(line.name),
                numbers: self.tables.numbers(&line.numbers),
                cost: line.cost,
                mode: line.mode,
                penalty: self.tables.penalty(line.penalty.as_ref()),
            });
        }
        let end = self.lines.len();
        self.requests.push(Asked { intent: ask.intent, end, gone: false });
    }

    /// The requests that are to be decided, each with its lines.
    pub(super) fn each(&self) -> impl Iterator<Item = (Intent, &[Line])> {
        let mut start = 0;
        let all = self.requests.iter().map(move |asked| {
            let lines = &self.lines[start..asked.end];
            start = asked.end;
            (asked, lines)
        });
        all.filter(|(asked, _)| !asked.gone).map(|(asked, lines)| (asked.intent, lines))
    }

    /// Whether something is owed, whoever refuses.
    pub(super) fn owes(&self) -> bool {
        self.lines.iter().any(|line| line.mode.owed().is_some())
    }

    /// The request at `index` by itself again.
    pub(super) fn ask(&self, index: usize) -> Option<Ask> {
        let asked = self.requests.get(index)?;
        let before = index.checked_sub(1).and_then(|before| self.requests.get(before));
        let lines = self.lines.get(before.map_or(0, |before| before.end)..asked.end)?;
        let named = |line: &Line| Named {
            name: self.tables.keys[line.key].clone(),
            numbers: self.tables.numbers[line.numbers],
            cost: line.cost,
            mode: line.mode,
            penalty: line.penalty.map(|penalty| self.tables.penalties[penalty]),
        };
        Some(Ask { intent: asked.intent, lines: lines.iter().map(named).collect() })
    }

    /// The program of `decide.lua`.
    pub(super) fn program(&self) -> Vec<u8> {
        let mut flat = Vec::with_capacity(self.requests.len() * 2 + self.lines.len() * 5);
        for (intent, lines) in self.each() {
            flat.extend([i64::from(intent == Intent::Take), lines.len() as i64]);
            for line in lines {
                flat.extend([
                    line.key as i64 + 1,
                    line.numbers as i64 + 1,
                    clamp(line.cost),
                    line.mode(),
                    line.penalty.map_or(0, |penalty| penalty as i64 + 1),
                ]);
            }
        }
        array(&flat)
    }
}
