//! The peers: how each is asked, what it promises, and how a reader repeats it.

mod library;
mod ours;
mod redis_cell;
mod script;
mod server;

use crate::promise::{Answer, Counts, Played, Promise, judge, judge_sum};
use crate::trace::{Step, Trace, TraceKind};

/// Why a cell of the table has no counts.
pub(crate) type NotApplicable = String;

/// A limiter behind its own interface.
pub(crate) trait Peer {
    /// Name, and what of it is used.
    fn name(&self) -> String;
    /// The version in use, or why there is none: a peer that is not installed is skipped.
    fn version(&self) -> Result<String, String>;
    fn promise(&self) -> Promise;
    /// What its own documentation says, and where.
    fn documented(&self) -> &'static str;
    /// How a reader repeats it without this program.
    fn repeat(&self) -> String;
    /// The unit in which it names waits.
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

/// Everybody, ours first.
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

/// A run of threads at one instant. Only the number of their admissions is known.
fn all_at_once(trace: &Trace, admitted: usize) -> Vec<Played> {
    let answer = |place| Answer { admitted: place < admitted, ..Answer::default() };
    trace.steps.iter().enumerate().map(|(place, step)| played(step, answer(place))).collect()
}

/// The version of a crate in the lock file of this workspace.
fn locked_version(name: &str) -> Result<String, String> {
    let lock = include_str!("../../../Cargo.lock");
    let line = format!("name = \"{name}\"\nversion = \"");
    let version = lock.split_once(&line).and_then(|(_, rest)| rest.split('"').next());
    version.map(str::to_owned).ok_or_else(|| format!("{name} is not in the lock file"))
}
