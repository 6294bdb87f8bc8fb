//! Rust crates: governor and throttlecrab on virtual clocks, limitador on the real one.

use super::ours::in_threads;
use super::server::{RealClock, play_real};
use super::{NotApplicable, Peer, all_at_once, locked_version, play_virtual};
use crate::promise::{Answer, Played, Promise};
use crate::trace::{START_US, THREADS, Trace, TraceKind};
use governor::clock::{Clock as _, FakeRelativeClock};
use governor::middleware::StateInformationMiddleware;
use governor::{Quota, RateLimiter};
use limitador::limit::{Context, Limit as LimitadorLimit, Namespace};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

pub(super) fn peers() -> Vec<Box<dyn Peer>> {
    vec![Box::new(Governor), Box::new(Throttlecrab), Box::new(Limitador)]
}

struct Governor;

impl Peer for Governor {
    fn name(&self) -> String {
        "governor".into()
    }

    fn version(&self) -> Result<String, String> {
        locked_version("governor")
    }

    fn promise(&self) -> Promise {
        Promise::Bucket
    }

    fn documented(&self) -> &'static str {
        "`Quota`: a burst size, and one cell replenished each `replenish_interval`"
    }

    fn repeat(&self) -> String {
        "`RateLimiter::direct_with_clock(Quota::per_second(10), FakeRelativeClock)` with `StateInformationMiddleware`; `check_n`".into()
    }

    fn play(&self, trace: &Trace) -> Result<Vec<Played>, NotApplicable> {
        let count = NonZeroU32::new(trace.limit.count as u32).expect("a limit above zero");
        let quota = match trace.limit.window_us {
            60_000_000 => Quota::per_minute(count),
            _ => Quota::per_second(count),
        };
        let clock = FakeRelativeClock::default();
        let limiter = RateLimiter::direct_with_clock(quota, clock.clone())
            .with_middleware::<StateInformationMiddleware>();
        if trace.kind == TraceKind::Threads {
            let each = trace.steps.len() / THREADS;
            let work = || (0..each).filter(|_| limiter.check().is_ok()).count();
            return Ok(all_at_once(trace, in_threads(work)));
        }
        let mut now_us = START_US;
        Ok(play_virtual(trace, |step| {
            clock.advance(Duration::from_micros(step.at_us - now_us));
            now_us = step.at_us;
            let cost = NonZeroU32::new(step.cost as u32).expect("costs are above zero");
            match limiter.check_n(cost) {
                Ok(Ok(state)) => {
                    let remaining = u64::from(state.remaining_burst_capacity());
                    Answer { admitted: true, retry_us: None, remaining: Some(remaining) }
                }
                Ok(Err(refused)) => {
                    let wait = refused.wait_time_from(clock.now());
                    let retry_us = Some(wait.as_nanos().div_ceil(1_000) as u64);
                    Answer { admitted: false, retry_us, remaining: None }
                }
                Err(_) => Answer::default(),
            }
        }))
    }
}

struct Throttlecrab;

impl Peer for Throttlecrab {
    fn name(&self) -> String {
        "throttlecrab".into()
    }

    fn version(&self) -> Result<String, String> {
        locked_version("throttlecrab")
    }

    fn promise(&self) -> Promise {
        Promise::Bucket
    }

    fn documented(&self) -> &'static str {
        "`rate_limit(key, max_burst, count_per_period, period, quantity, now)`: GCRA; `max_burst` at once"
    }

    fn repeat(&self) -> String {
        "`RateLimiter::new(PeriodicStore::new()).rate_limit(\"key\", 10, 10, 1, cost, now)` with the trace's wall clock as `now`".into()
    }

    fn play(&self, trace: &Trace) -> Result<Vec<Played>, NotApplicable> {
        let limiter = throttlecrab::RateLimiter::new(throttlecrab::PeriodicStore::new());
        let limiter = Mutex::new(limiter);
        let (count, period_s) =
            (trace.limit.count as i64, (trace.limit.window_us / 1_000_000) as i64);
        let ask = |wall_us: u64, cost: u64| {
            let now = SystemTime::UNIX_EPOCH + Duration::from_micros(wall_us);
            let mut limiter = limiter.lock().expect("no panic");
            limiter.rate_limit("key", count, count, period_s, cost as i64, now)
        };
        if trace.kind == TraceKind::Threads {
            let each = trace.steps.len() / THREADS;
            let admitted = |_: &usize| ask(START_US, 1).is_ok_and(|(admitted, _)| admitted);
            return Ok(all_at_once(trace, in_threads(|| (0..each).filter(admitted).count())));
        }
        Ok(play_virtual(trace, |step| match ask(step.wall_us, step.cost) {
            Ok((admitted, state)) => Answer {
                admitted,
                retry_us: Some(state.retry_after.as_nanos().div_ceil(1_000) as u64)
                    .filter(|_| step.cost <= trace.limit.count),
                remaining: u64::try_from(state.remaining).ok(),
            },
            Err(_) => Answer::default(),
        }))
    }
}

struct Limitador;

impl Peer for Limitador {
    fn name(&self) -> String {
        "limitador".into()
    }

    fn version(&self) -> Result<String, String> {
        locked_version("limitador")
    }

    fn promise(&self) -> Promise {
        Promise::FromFirst
    }

    fn documented(&self) -> &'static str {
        "`Limit`: `max_value` in `seconds`; the window begins with the first request"
    }

    fn repeat(&self) -> String {
        "`RateLimiter::new(100)` with `Limit::new(namespace, 10, 1, [], [])`; `check_rate_limited_and_update` in real time".into()
    }

    fn play(&self, trace: &Trace) -> Result<Vec<Played>, NotApplicable> {
        if matches!(trace.kind, TraceKind::Long | TraceKind::ClockStep) {
            return Err("its clock is the system's, and cannot be set from outside".into());
        }
        let namespace = Namespace::from("exactness");
        let limiter = limitador::RateLimiter::new(100);
        let seconds = trace.limit.window_us / 1_000_000;
        let none: Vec<limitador::limit::Predicate> = vec![];
        limiter.add_limit(LimitadorLimit::new(
            namespace.clone(),
            trace.limit.count,
            seconds,
            none,
            vec![],
        ));
        let context = Context::from(HashMap::from([("user".to_owned(), "key".to_owned())]));
        let ask =
            |cost: u64| match limiter.check_rate_limited_and_update(&namespace, &context, cost) {
                Ok(checked) => {
                    let counter = checked.counters.first();
                    let wait = counter.and_then(|counter| counter.expires_in());
                    Answer {
                        admitted: !checked.limited,
                        retry_us: wait
                            .filter(|_| checked.limited && cost <= trace.limit.count)
                            .map(|wait| wait.as_micros() as u64),
                        remaining: counter.and_then(|counter| counter.remaining()),
                    }
                }
                Err(_) => Answer::default(),
            };
        Ok(play_real(trace, RealClock::start(1), |_| ask))
    }
}
