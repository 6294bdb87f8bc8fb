//! One process: leases, what it knows of the primaries, a clock of its own.

use std::collections::{BTreeMap, BTreeSet};
use tollgate_store::lease::{Holder, Lease, LedgerReply, PrimaryMonitor, SeenMarker, TakeoverWait};

/// One process, or the place where one runs.
#[derive(Debug)]
pub(crate) struct Node {
    /// Rises with every start: what was meant for an earlier process is lost.
    pub(crate) starts: u64,
    pub(crate) up: bool,
    /// Does nothing, hears nothing and notices nothing until then.
    pub(crate) paused_until_us: u64,
    pub(crate) cut_off_until_us: u64,
    /// When it last looked for units to return, and the longest time between two looks.
    pub(crate) ticked_us: u64,
    pub(crate) longest_gap_us: u64,
    pace_ppm: i64,
    born_us: u64,
    process: [u32; 4],
    holdings: u64,
    flights: u64,
    pub(crate) leases: BTreeMap<usize, Lease>,
    pub(crate) totals: Totals,
    pub(crate) watches: Vec<PrimaryMonitor>,
    /// The number of a look that waits for its answer, by primary.
    pub(crate) looking: Vec<Option<u64>>,
    /// The server that it takes for the primary.
    pub(crate) follows: Vec<Option<u64>>,
    /// The mark of another server that it found, and the wait of the server that has it.
    pub(crate) foreign: Vec<Option<u128>>,
    pub(crate) takeovers: Vec<TakeoverWait<(u128, u64)>>,
    /// Answers whose units wait for a look at the primary: key, number, when they came.
    pub(crate) doubtful: Vec<(usize, u64, u64, LedgerReply)>,
    /// Decisions of the store that wait for a look at the primary.
    pub(crate) undecided: Vec<Undecided>,
    /// Requests that the store was left to decide and that have no answer yet.
    pub(crate) asked: BTreeSet<u64>,
    /// Requests that wait for an answer, by key: cost, and when they give up.
    pub(crate) waiting: BTreeMap<usize, Vec<(u64, u64)>>,
}

/// A decision of the store, which counts if the store had lost nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undecided {
    pub(crate) key: usize,
    pub(crate) cost: u64,
    pub(crate) number: u64,
    /// When the request was sent, and when the answer came.
    pub(crate) times_us: (u64, u64),
    /// When the store decided, and by its clock.
    pub(crate) decided_us: (u64, u64),
    /// The primary that decided.
    pub(crate) primary: usize,
    /// The mark that the answer showed.
    pub(crate) mark: SeenMarker,
    /// Whether the answer came from the server that the request was for.
    pub(crate) same_server: bool,
}

/// Units since the process started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) granted: u64,
    pub(crate) spent: u64,
    pub(crate) returned: u64,
    pub(crate) stranded: u64,
}

impl Node {
    pub(crate) fn new(primaries: usize, pace_ppm: i64) -> Self {
        Self {
            starts: 0,
            up: false,
            paused_until_us: 0,
            cut_off_until_us: 0,
            ticked_us: 0,
            longest_gap_us: 0,
            pace_ppm,
            born_us: 0,
            process: [0; 4],
            holdings: 0,
            flights: 0,
            leases: BTreeMap::new(),
            totals: Totals::default(),
            watches: vec![PrimaryMonitor::default(); primaries],
            looking: vec![None; primaries],
            follows: vec![None; primaries],
            foreign: vec![None; primaries],
            takeovers: vec![TakeoverWait::default(); primaries],
            doubtful: Vec::new(),
            undecided: Vec::new(),
            asked: BTreeSet::new(),
            waiting: BTreeMap::new(),
        }
    }

    pub(crate) fn start(&mut self, now_us: u64, process: [u32; 4]) {
        self.crash();
        (self.up, self.born_us, self.process) = (true, now_us, process);
        self.ticked_us = now_us;
        self.starts += 1;
    }

    pub(crate) fn crash(&mut self) {
        self.up = false;
        self.leases.clear();
        self.totals = Totals::default();
        self.waiting.clear();
        self.doubtful.clear();
        self.undecided.clear();
        self.asked.clear();
        self.watches.fill(PrimaryMonitor::default());
        self.looking.fill(None);
        self.follows.fill(None);
        self.foreign.fill(None);
        self.takeovers.fill(TakeoverWait::default());
    }

    /// Finds that another server is the primary.
    pub(crate) fn reconnect(&mut self, primary: usize) {
        self.follows[primary] = None;
        self.watches[primary].connection_lost();
        self.looking[primary] = None;
    }

    pub(crate) fn is_awake(&self, now_us: u64) -> bool {
        self.up && now_us >= self.paused_until_us
    }

    pub(crate) fn is_cut_off(&self, now_us: u64) -> bool {
        now_us < self.cut_off_until_us
    }

    /// What its clock says: it starts anywhere and runs at its own pace, in suspension too.
    pub(crate) fn clock_us(&self, now_us: u64) -> u64 {
        let passed = (now_us - self.born_us) as i64;
        (5_000_000 + passed + passed * self.pace_ppm / 1_000_000) as u64
    }

    pub(crate) fn holder(&mut self) -> Holder {
        self.holdings += 1;
        Holder { process: self.process, number: self.holdings }
    }

    pub(crate) fn flight(&mut self) -> u64 {
        self.flights += 1;
        self.flights
    }

    /// Every unit that was granted is spent, returned, stranded or held.
    pub(crate) fn check_totals(&mut self) -> Result<(), String> {
        let totals = &mut self.totals;
        totals.stranded += self.leases.values_mut().map(Lease::take_stranded).sum::<u64>();
        let held = self.leases.values().map(Lease::held).sum::<u64>();
        match totals.granted == totals.spent + totals.returned + totals.stranded + held {
            true => Ok(()),
            false => Err(format!("units are missing: {totals:?} and {held} held")),
        }
    }

    /// Drops the lease for a key.
    pub(crate) fn drop_lease(&mut self, key: usize) {
        if let Some(mut lease) = self.leases.remove(&key) {
            self.totals.stranded += lease.held() + lease.take_stranded();
        }
    }

    /// The lease for a key, made when it is first needed.
    pub(crate) fn lease(&mut self, key: usize, now_us: u64) -> &mut Lease {
        if !self.leases.contains_key(&key) {
            let lease = Lease::new(self.holder(), self.clock_us(now_us));
            self.leases.insert(key, lease);
        }
        self.leases.get_mut(&key).unwrap()
    }
}
