//! Tollgate's library on its `ManualClock`. Its own clock never goes back: a step of the wall clock
//! does not affect it.

use super::{NotApplicable, Peer, all_at_once, locked_version, play_virtual};
use crate::promise::{Answer, Limit, Played, Promise};
use crate::trace::{START_US, THREADS, Trace, TraceKind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tollgate::quota::Algorithm;
use tollgate::{Decision, Limiter, ManualClock, Quota};

struct Ours(Algorithm, Promise);

pub(super) fn peers() -> Vec<Box<dyn Peer>> {
    let all = [
        (Algorithm::SlidingWindow, Promise::SlidingCounter),
        (Algorithm::FixedWindow, Promise::Aligned),
        (Algorithm::SlidingLog, Promise::Log),
        (Algorithm::TokenBucket, Promise::Bucket),
        (Algorithm::Gcra, Promise::Bucket),
        (Algorithm::LeakyBucket, Promise::Bucket),
    ];
    all.into_iter().map(|(algorithm, promise)| Box::new(Ours(algorithm, promise)) as _).collect()
}

impl Ours {
    fn limiter(&self, limit: Limit, clock: Arc<ManualClock>) -> Limiter {
        let count = limit.count as u32;
        let quota = Quota::of(count).every(Duration::from_micros(limit.window_us));
        let quota = quota.and_then(|quota| quota.with_algorithm(self.0));
        let quota = match self.1 {
            Promise::Bucket => quota.and_then(|quota| quota.with_burst(count)),
            _ => quota,
        };
        let limiter = Limiter::builder(quota.expect("the limit is in range")).clock(clock);
        limiter.build().expect("one quota")
    }
}

impl Peer for Ours {
    fn name(&self) -> String {
        format!("Tollgate, {}", self.0)
    }

    fn version(&self) -> Result<String, String> {
        locked_version("tollgate")
    }

    fn promise(&self) -> Promise {
        self.1
    }

    fn documented(&self) -> &'static str {
        "[What is exact](reference.md#what-is-exact)"
    }

    fn repeat(&self) -> String {
        "`Limiter::builder(quota)`, `ManualClock`, `check_n`".into()
    }

    fn play(&self, trace: &Trace) -> Result<Vec<Played>, NotApplicable> {
        let clock = Arc::new(ManualClock::new(START_US));
        let limiter = self.limiter(trace.limit, clock.clone());
        if trace.kind == TraceKind::Threads {
            let each = trace.steps.len() / THREADS;
            let work = || (0..each).filter(|_| limiter.check("key").is_admitted()).count();
            let admitted = in_threads(work);
            return Ok(all_at_once(trace, admitted));
        }
        Ok(play_virtual(trace, |step| {
            clock.set(step.at_us);
            match limiter.check_n("key", step.cost) {
                Decision::Admitted(permit) => {
                    Answer { admitted: true, retry_us: None, remaining: Some(permit.remaining) }
                }
                Decision::Refused(refusal) => Answer {
                    admitted: false,
                    retry_us: refusal.retry_after().map(|wait| wait.as_micros() as u64),
                    remaining: Some(refusal.remaining),
                },
            }
        }))
    }
}

/// The sum over all threads.
pub(super) fn in_threads(work: impl Fn() -> usize + Sync) -> usize {
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(&work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).sum()
    })
}
