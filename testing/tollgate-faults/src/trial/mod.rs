//! One run of a scenario: nodes on a store, load throughout, and the result.

mod policy;

pub use policy::{FailurePolicy, LimitedPath, MIXED, MIXED_PATHS, mixed};

use crate::clock::{now_us, wait_until};
use crate::load::{Load, LoadRequest, LoadSettings, Outcome, Sample};
use crate::measurements::{Check, Measurements, load_tenths, p99_us};
use crate::node::Node;
use crate::oracle::Admitted;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The deadline of a decision, by default and in full runs.
pub const DEADLINE: Duration = Duration::from_millis(25);
/// The time for recovery after a fault.
pub const RECOVERY: Duration = Duration::from_secs(1);
/// The memory growth that a fault may cause, in KiB.
pub const GROWTH_KIB: u64 = 32 << 10;
/// The longest gap within one outage. Responses without the store that are further apart belong to
/// different outages.
const LULL_US: u64 = 500_000;
/// The deadline of everything that must happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of users whose keys show whether all is well; enough for every part of a cluster.
const LOOKED_AT: u32 = 24;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Context {
    /// The `tollgate` under test.
    pub program: PathBuf,
    /// Whether this is a full run, which also judges times, or the short form of the tests.
    pub is_full: bool,
}

impl Context {
    /// Returns `full` in full runs, and `short` in short ones.
    pub fn pick<T>(&self, short: T, full: T) -> T {
        if self.is_full { full } else { short }
    }

    /// The deadline in the file. The short form judges counts only, on a machine that may be slow
    /// because of other tests.
    pub fn deadline(&self) -> &'static str {
        self.pick("250ms", "25ms")
    }
}

/// The setup of a trial.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The number of nodes.
    pub nodes: usize,
    /// The value of `store.redis`.
    pub store: String,
    /// The rest of the file.
    pub limits: &'a str,
    /// The limits, by path.
    pub paths: &'a [LimitedPath],
    /// Requests per second over all nodes.
    pub per_second: u64,
    /// Returns the `n`th request.
    pub pick: fn(u64) -> LoadRequest,
}

/// A running trial.
#[derive(Debug)]
pub struct Trial {
    /// The nodes.
    pub nodes: Vec<Node>,
    paths: Vec<LimitedPath>,
    load: Option<Load>,
    per_second: u64,
    is_full: bool,
    rss_before: Vec<u64>,
    rss_growth_kib: u64,
    start_us: u64,
    fault_us: u64,
    cleared_us: u64,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct TrialResult {
    /// The measurements.
    pub figures: Measurements,
    /// The expectations.
    pub checks: Vec<Check>,
    /// All requests.
    pub samples: Vec<Sample>,
}

impl Plan<'_> {
    /// A plan with three nodes and the mixed limits.
    pub fn mixed(context: &Context, store: &str) -> Self {
        Plan {
            nodes: 3,
            store: format!("{store}, deadline: {}", context.deadline()),
            limits: MIXED,
            paths: MIXED_PATHS,
            per_second: context.pick(300, 600),
            pick: mixed,
        }
    }

    /// The file of each node.
    pub fn file(&self) -> String {
        format!("store: {{redis: {{{}}}}}\n{}", self.store, self.limits)
    }
}

impl Trial {
    /// Starts nodes and load, and runs them for a while without a fault.
    pub fn start(context: &Context, plan: &Plan<'_>) -> Self {
        let mut trial = Self::cold(context, plan);
        assert!(
            trial.is_healed(),
            "the nodes do not find their store: {:#?}",
            trial.nodes[0].log()
        );
        trial.start_load(plan);
        trial.run_for(Duration::from_millis(context.pick(800, 5_000)));
        trial
    }

    /// Starts nodes without load, even if their store is not reachable.
    pub fn cold(context: &Context, plan: &Plan<'_>) -> Self {
        let file = plan.file();
        let nodes = (0..plan.nodes).map(|_| Node::start(&context.program, &file)).collect();
        let now = now_us();
        Self {
            nodes,
            paths: plan.paths.to_vec(),
            load: None,
            per_second: plan.per_second,
            is_full: context.is_full,
            rss_before: Vec::new(),
            rss_growth_kib: 0,
            start_us: now,
            fault_us: now,
            cleared_us: now,
        }
    }

    /// Starts the load.
    pub fn start_load(&mut self, plan: &Plan<'_>) {
        self.start_us = now_us();
        self.load = Some(Load::start(self.addresses(), self.pace(plan, u64::MAX), plan.pick));
    }

    /// Runs a load of a fixed number of requests to its end.
    pub fn send_requests(&mut self, plan: &Plan<'_>, most: u64) {
        self.start_us = now_us();
        let load = Load::start(self.addresses(), self.pace(plan, most), plan.pick);
        assert!(wait_until(PATIENCE, || load.answered() as u64 == most), "not all were answered");
        self.load = Some(load);
    }

    /// The settings of the load. Full runs are strictly open-loop; the short form only as far as
    /// the machine keeps up.
    fn pace(&self, plan: &Plan<'_>, most: u64) -> LoadSettings {
        let per_second = plan.per_second;
        match self.is_full {
            true => LoadSettings {
                per_second,
                requests_max: most,
                in_flight_max: u64::MAX,
                timeout: Duration::from_secs(10),
            },
            false => LoadSettings {
                per_second,
                requests_max: most,
                in_flight_max: 50,
                timeout: PATIENCE,
            },
        }
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.http).collect()
    }

    /// Waits, and samples the memory of the nodes.
    pub fn run_for(&mut self, time: Duration) {
        let end_us = now_us() + time.as_micros() as u64;
        while now_us() < end_us {
            std::thread::sleep(Duration::from_millis(20).min(time));
            for (node, before) in self.nodes.iter().zip(&self.rss_before) {
                let growth = node.process().rss_kib().saturating_sub(*before);
                self.rss_growth_kib = self.rss_growth_kib.max(growth);
            }
        }
    }

    /// Marks the start of the fault.
    pub fn mark_fault(&mut self) {
        self.rss_before = self.nodes.iter().map(|node| node.process().rss_kib()).collect();
        self.fault_us = now_us();
        self.cleared_us = self.fault_us;
    }

    /// Marks the end of the fault.
    pub fn mark_cleared(&mut self) {
        self.cleared_us = now_us();
    }

    /// Waits until every node decides with its store again, for every part of it. Returns whether
    /// that happened in time.
    pub fn is_healed(&self) -> bool {
        let is_well = |node: &Node, user: u32| {
            let answer = node.check(&format!("healed-{user}"), "/heal");
            answer.is_ok_and(|answer| answer.status == 200 && answer.source.is_none())
        };
        let all = |node: &Node| (0..LOOKED_AT).all(|user| is_well(node, user));
        self.nodes.iter().all(|node| wait_until(PATIENCE, || all(node)))
    }

    /// The number of finished requests.
    pub fn answered(&self) -> usize {
        self.load.as_ref().map_or(0, Load::answered)
    }

    /// Waits for recovery, runs a little longer, stops the load, and returns the result.
    pub fn end(mut self) -> TrialResult {
        let healed = self.is_healed();
        self.run_for(Duration::from_millis(if self.is_full { 4_000 } else { 500 }));
        let (samples, in_flight_max) = match self.load.take() {
            Some(load) => load.end(),
            None => (Vec::new(), 0),
        };
        let mut figures = Measurements {
            requests: samples.len() as u64,
            over_admission: Some(over_admission(&self.paths, &samples)),
            in_flight_max,
            asked: Some((self.per_second, self.nodes.len() as u64)),
            load_tenths: load_tenths(),
            ..Measurements::default()
        };
        for sample in &samples {
            figures.lost += u64::from(sample.outcome == Outcome::Lost);
            figures.errors += u64::from(matches!(sample.outcome, Outcome::Wrong(_)));
            let by_policy = sample.outcome.is_without_store() && !sample.outcome.is_error();
            figures.by_policy += u64::from(by_policy);
        }
        if self.fault_us > self.start_us {
            let recovered_us = self.recovered_us(&samples);
            figures.recovery_us = Some(recovered_us - self.cleared_us);
            let with = p99_us(&samples, self.fault_us, recovered_us.max(self.cleared_us));
            let without = p99_us(&samples, self.start_us, self.fault_us);
            figures.p99_us = without.zip(with);
            figures.rss_growth_kib = Some(self.rss_growth_kib);
        }
        let mut ended = TrialResult { figures, checks: Vec::new(), samples };
        ended.check("every node heals by itself", healed);
        ended.check(
            "each limit answers by its own policy",
            keep_policy(&self.paths, &ended.samples),
        );
        ended.check("no node has a task that died", !self.has_panicked());
        ended
    }

    fn has_panicked(&self) -> bool {
        self.nodes.iter().any(|node| node.logged("panicked") > 0)
    }

    /// The time of the last response without the store that the fault caused.
    fn recovered_us(&self, samples: &[Sample]) -> u64 {
        let without = samples.iter().filter(|one| one.outcome.is_without_store());
        let mut times: Vec<_> = without.map(|one| one.received_us).collect();
        times.sort_unstable();
        let mut end_us = self.cleared_us;
        for time_us in times.into_iter().filter(|time_us| *time_us > self.cleared_us) {
            if time_us - end_us > LULL_US {
                break;
            }
            end_us = time_us;
        }
        end_us
    }
}

impl TrialResult {
    /// Checks an expectation that must hold on any machine.
    pub fn check(&mut self, what: impl Into<String>, held: bool) {
        self.checks.push(Check { what: what.into(), held, is_timed: false });
    }

    /// Checks an expectation that must hold on an idle machine.
    pub fn check_timing(&mut self, what: impl Into<String>, held: bool) {
        self.checks.push(Check { what: what.into(), held, is_timed: true });
    }

    /// Adds a measurement of this scenario only.
    pub fn note(&mut self, name: &'static str, value: u64) {
        self.figures.notes.insert(name, value);
    }

    /// Checks that no limit was exceeded, and that every request got a response.
    pub fn check_no_excess(mut self) -> Self {
        let over = self.figures.over_admission;
        self.check("over-admission 0", over == Some(0));
        self.check_all_answered()
    }

    /// Checks that every request got an expected response.
    pub fn check_all_answered(mut self) -> Self {
        let (errors, lost) = (self.figures.errors, self.figures.lost);
        self.check("errors 0, lost 0", errors + lost == 0);
        self
    }

    /// Checks the budgets of time and memory.
    pub fn check_budget(mut self) -> Self {
        let figures = self.figures.clone();
        let within =
            |value: Option<u64>, most: u128| value.is_none_or(|value| u128::from(value) <= most);
        self.check_timing(
            "p99 added <= 25 ms",
            within(figures.p99_added_us(), DEADLINE.as_micros()),
        );
        self.check_timing("recovery <= 1 s", within(figures.recovery_us, RECOVERY.as_micros()));
        self.check("memory +32 MiB at most", within(figures.rss_growth_kib, GROWTH_KIB.into()));
        self
    }
}

/// The units that the store admitted beyond the limit, over all keys.
fn over_admission(paths: &[LimitedPath], samples: &[Sample]) -> u64 {
    let mut keys = BTreeMap::<_, Vec<Admitted>>::new();
    for sample in samples.iter().filter(|one| one.outcome == Outcome::Admitted) {
        let Sample { ask, sent_us, received_us, .. } = *sample;
        let admitted = Admitted { sent_us, received_us, cost: ask.cost };
        keys.entry((ask.path, ask.user)).or_default().push(admitted);
    }
    let bound = |path: &str| paths.iter().find(|one| one.path == path).map(|one| one.bound);
    keys.iter().map(|((path, _), all)| bound(path).map_or(0, |bound| bound.excess(all))).sum()
}

/// Whether responses without the store followed the failure policy, and no share was exceeded.
fn keep_policy(paths: &[LimitedPath], samples: &[Sample]) -> bool {
    let mut shares = BTreeMap::<_, u64>::new();
    let policy = |path: &str| paths.iter().find(|one| one.path == path).map(|one| one.policy);
    samples.iter().all(|sample| {
        let policy = policy(sample.ask.path);
        match sample.outcome {
            Outcome::FailOpen => policy == Some(FailurePolicy::Open),
            Outcome::FailClosed => policy == Some(FailurePolicy::Closed),
            Outcome::LocalAdmitted => {
                let share =
                    shares.entry((sample.ask.path, sample.ask.user, sample.ask.node)).or_default();
                *share += sample.ask.cost;
                matches!(policy, Some(FailurePolicy::Local(most)) if *share <= most)
            }
            Outcome::LocalRefused => matches!(policy, Some(FailurePolicy::Local(_))),
            Outcome::Admitted | Outcome::Refused | Outcome::Wrong(_) | Outcome::Lost => true,
        }
    })
}
