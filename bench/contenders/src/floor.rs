//! The floor: the least work of any limiter on this machine: a clock, a keyed hash, one cell.
//!
//! The floors are not usable limiters: they never grow, never drop state, and use a hash as the
//! key.

use crate::{Arrivals, Contender, Limit};
use ahash::RandomState;
use quanta::Clock;
use std::sync::atomic::{AtomicU64, Ordering};

const BATCH: usize = 64;

/// GCRA over ticks of the processor's counter, which are nearly nanoseconds.
#[derive(Debug)]
struct Gcra {
    interval: u64,
    tolerance: u64,
    clock: Clock,
    keys: RandomState,
}

impl Gcra {
    fn new(limit: Limit) -> Self {
        let interval = u64::from(limit.period_s) * 1_000_000_000 / u64::from(limit.count);
        let tolerance = interval * u64::from(limit.burst);
        Self { interval, tolerance, clock: Clock::new(), keys: RandomState::new() }
    }

    #[inline]
    fn admits(&self, cell: &AtomicU64, now: u64) -> bool {
        let mut tat = cell.load(Ordering::Relaxed);
        loop {
            let next = tat.max(now) + self.interval;
            if next - now > self.tolerance {
                return false;
            }
            match cell.compare_exchange_weak(tat, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => tat = other,
            }
        }
    }
}

/// One cell: reads the counter, hashes the key, swaps the cell.
#[derive(Debug)]
pub struct FloorHot {
    gcra: Gcra,
    cell: AtomicU64,
}

impl FloorHot {
    /// Enforces `limit` on every arrival.
    pub fn new(limit: Limit) -> Self {
        Self { gcra: Gcra::new(limit), cell: AtomicU64::new(0) }
    }
}

impl Contender for FloorHot {
    fn name(&self) -> &'static str {
        "floor"
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        arrivals.admit(|key| {
            let hash = std::hint::black_box(self.gcra.keys.hash_one(key.as_bytes()));
            hash != 0 && self.gcra.admits(&self.cell, self.gcra.clock.raw())
        })
    }
}

/// Three cells for three quotas: swaps all three, whether or not all admit.
#[derive(Debug)]
pub struct FloorThree {
    gcra: Gcra,
    cells: [AtomicU64; 3],
}

impl FloorThree {
    /// Enforces `limit` three times on every arrival.
    pub fn new(limit: Limit) -> Self {
        Self { gcra: Gcra::new(limit), cells: Default::default() }
    }
}

impl Contender for FloorThree {
    fn name(&self) -> &'static str {
        "floor, three cells"
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        arrivals.admit(|key| {
            let hash = std::hint::black_box(self.gcra.keys.hash_one(key.as_bytes()));
            let now = self.gcra.clock.raw();
            hash != 0 && self.cells.iter().all(|cell| self.gcra.admits(cell, now))
        })
    }
}

/// The quotas of one key beside its tag. Power-of-two sizes keep a cell within a cache line.
#[derive(Debug)]
struct Cell<const QUOTAS: usize> {
    tag: AtomicU64,
    tats: [AtomicU64; QUOTAS],
}

/// An array of cells of 16 bytes, or 32 for three quotas, at most half full, with linear probing.
#[derive(Debug)]
pub struct FloorTable<const QUOTAS: usize = 1> {
    gcra: Gcra,
    cells: Box<[Cell<QUOTAS>]>,
}

impl<const QUOTAS: usize> FloorTable<QUOTAS> {
    /// Enforces `limit`, once for each quota, on up to `keys` keys.
    pub fn new(limit: Limit, keys: usize) -> Self {
        let cell = || Cell { tag: AtomicU64::new(0), tats: [const { AtomicU64::new(0) }; QUOTAS] };
        let cells = (0..(keys * 2).next_power_of_two()).map(|_| cell()).collect();
        Self { gcra: Gcra::new(limit), cells }
    }

    #[inline]
    fn place(&self, key: &str) -> (usize, u64) {
        let hash = self.gcra.keys.hash_one(key.as_bytes()) | 1;
        ((hash >> 20) as usize & (self.cells.len() - 1), hash)
    }

    #[inline]
    fn cell(&self, (mut at, tag): (usize, u64)) -> &Cell<QUOTAS> {
        loop {
            let cell = &self.cells[at];
            let found = cell.tag.load(Ordering::Relaxed);
            if found == tag {
                return cell;
            }
            let claimed = || cell.tag.compare_exchange(0, tag, Ordering::AcqRel, Ordering::Relaxed);
            if found == 0 && claimed().is_ok_and(|_| true) {
                return cell;
            }
            if cell.tag.load(Ordering::Relaxed) != tag {
                at = (at + 1) & (self.cells.len() - 1);
            }
        }
    }
}

impl<const QUOTAS: usize> Contender for FloorTable<QUOTAS> {
    fn name(&self) -> &'static str {
        if QUOTAS == 1 { "floor" } else { "floor, three cells" }
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        arrivals.admit(|key| {
            let cell = self.cell(self.place(key));
            let now = self.gcra.clock.raw();
            cell.tats.iter().all(|tat| self.gcra.admits(tat, now))
        })
    }
}

/// The array, 64 keys at a time: requests all cache lines before using the first, and reads the
/// clock once.
#[derive(Debug)]
pub struct FloorBatch(pub FloorTable);

impl Contender for FloorBatch {
    fn name(&self) -> &'static str {
        "floor, batch of 64"
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        let Self(FloorTable { gcra, cells }) = self;
        arrivals.admit_batches(|keys: &[&String; BATCH]| {
            let now = gcra.clock.raw();
            let places = keys.map(|key| self.0.place(key));
            // Independent loads overlap, which has the effect of a prefetch.
            let touched = places.iter().fold(0, |sum: u64, place| {
                sum.wrapping_add(cells[place.0].tag.load(Ordering::Relaxed))
            });
            std::hint::black_box(touched);
            places.iter().filter(|&&place| gcra.admits(&self.0.cell(place).tats[0], now)).count()
        })
    }
}
