//! The peers: how each is called, what it promises, and how a reader can repeat the run.

mod library;
mod ours;
mod redis_cell;
mod script;
mod server;

use crate::promise::{Answer, Counts, Played, Promise, judge, judge_sum};
use crate::trace::{Step, Trace, TraceKind};

/// The reason why a cell of the table has no counts.
pub(crate) type NotApplicable = String;

/// A limiter with its own interface.
pub(crate) trait Peer {
    /// The name, and the part that is used.
    fn name(&self) -> String;
    /// The installed version, or the reason why there is none: such a peer is skipped.
    fn version(&self) -> Result<String, String>;
    fn promise(&self) -> Promise;
    /// The promise in its own documentation, and where to find it.
    fn documented(&self) -> &'static str;
    /// A way to repeat the run without this program.
    fn repeat(&self) -> String;
    /// The unit of waits in its answers.
    fn retry_unit_us(&self) -> u64 {
        1
    }
    /// Plays a trace on a fresh key.
    fn play(&self, trace: &Trace) -> Result<Vec<Played>, NotApplicable>;

    fn counts(&self, trace: &Trace) -> Result<Counts, NotApplicable> {
        let played = self.play(trace)?;
        if trace.kind == TraceKind::Threads {
            return Ok(judge_sum(self.promise(), trace.limit, &played));
        }
        Ok(judge(self.promise(), trace.limit, self.retry_unit_us(), &played))
    }
}

/// All peers, Tollgate first.
pub(crate) fn peers() -> Vec<Box<dyn Peer>> {
    let mut all = ours::peers();
    all.extend(library::peers());
    all.push(Box::new(redis_cell::RedisCell));
    all.extend(server::peers());
    all.extend(script::peers());
    all
}

/// Plays a trace on a virtual clock.
fn play_virtual(trace: &Trace, mut decide: impl FnMut(&Step) -> Answer) -> Vec<Played> {
    let play = |step: &Step| played(step, decide(step));
    trace.steps.iter().map(play).collect()
}

fn played(step: &Step, answer: Answer) -> Played {
    Played { from_us: step.at_us, to_us: step.at_us, cost: step.cost, answer }
}

/// A run of threads at one instant. Only the number of admissions is known.
fn all_at_once(trace: &Trace, admitted: usize) -> Vec<Played> {
    let answer = |place| Answer { admitted: place < admitted, ..Answer::default() };
    trace.steps.iter().enumerate().map(|(place, step)| played(step, answer(place))).collect()
}

/// The version of a crate in this workspace's lock file.
fn locked_version(name: &str) -> Result<String, String> {
    let lock = include_str!("../../../Cargo.lock");
    let line = format!("name = \"{name}\"\nversion = \"");
    let version = lock.split_once(&line).and_then(|(_, rest)| rest.split('"').next());
    version.map(str::to_owned).ok_or_else(|| format!("{name} is not in the lock file"))
}
