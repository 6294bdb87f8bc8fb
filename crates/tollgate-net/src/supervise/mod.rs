//! Supervisor: restarts the work of a thread after a panic, and detects a stuck thread. The node is
//! not ready meanwhile.

mod heartbeat;
#[cfg(test)]
mod tests;

use crate::health::{Health, lock};
pub use heartbeat::HEARTBEAT_INTERVAL;
use heartbeat::{Heartbeat, HeartbeatChange};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// The shortest delay before a restart. The delay grows, so that a repeated panic does not keep a
/// core busy.
const RESTART_DELAY_MIN: Duration = Duration::from_millis(100);
const RESTART_DELAY_MAX: Duration = Duration::from_secs(1);

/// Whether the work starts or restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The work has not run before.
    First,
    /// The work panicked.
    Restart,
}

/// Supervises the work of one thread.
#[derive(Debug)]
pub struct Supervisor {
    /// The name of the work in `/readyz` and in the log.
    subject: String,
    threads: Option<Arc<WatchedThreads>>,
    running: AtomicBool,
    heartbeat: Heartbeat,
}

/// The longest time between two heartbeat rounds of the control thread.
const CONTROL_THREAD_LATE_US: u64 = 4_000_000;
/// The name of the control thread in `/readyz`.
const CONTROL_THREAD: &str = "control thread";

/// Supervisors of the threads with a heartbeat, and the node's health.
#[derive(Debug, Default)]
pub struct WatchedThreads {
    health: Arc<Health>,
    supervisors: Mutex<Vec<Weak<Supervisor>>>,
    /// The time of the control thread's last heartbeat round; zero before the first.
    asked_us: AtomicU64,
    is_asker_late: AtomicBool,
}

impl WatchedThreads {
    /// Creates an empty set.
    pub fn new(health: Arc<Health>) -> Self {
        Self { health, ..Self::default() }
    }

    /// Reports whether the control thread is stuck, as in a file system that does not answer. The
    /// node stays ready, with the last good file.
    pub fn check_asker(&self, now_us: u64) {
        let health = &self.health;
        let asked_us = self.asked_us.load(Relaxed);
        let is_late = asked_us > 0 && now_us.saturating_sub(asked_us) > CONTROL_THREAD_LATE_US;
        match (self.is_asker_late.swap(is_late, Relaxed), is_late) {
            (false, true) => {
                tracing::error!(
                    task = CONTROL_THREAD,
                    "stuck: files are not read, threads not watched"
                );
                health.degrade(CONTROL_THREAD, "stuck: files are not read, threads not watched");
            }
            (true, false) => {
                tracing::info!(task = CONTROL_THREAD, "no longer stuck");
                health.clear(CONTROL_THREAD);
            }
            _ => {}
        }
    }

    /// Requests a heartbeat from each thread, and reports threads that did not answer.
    pub fn ask(&self, now_us: u64) {
        self.asked_us.store(now_us, Relaxed);
        let mut all = lock(&self.supervisors);
        all.retain(|supervisor| supervisor.strong_count() > 0);
        all.iter().filter_map(Weak::upgrade).for_each(|supervisor| supervisor.ask());
    }
}

impl Supervisor {
    /// Creates a supervisor of a thread without a heartbeat.
    pub fn new(subject: String, threads: Option<Arc<WatchedThreads>>) -> Self {
        Self { subject, threads, running: AtomicBool::new(true), heartbeat: Heartbeat::default() }
    }

    /// Creates a supervisor of a thread with a heartbeat. Its work must run
    /// [`answer_heartbeats`](Self::answer_heartbeats).
    pub fn watched(subject: String, threads: Option<Arc<WatchedThreads>>) -> Arc<Self> {
        let supervisor = Arc::new(Self::new(subject, threads));
        if let Some(threads) = &supervisor.threads {
            lock(&threads.supervisors).push(Arc::downgrade(&supervisor));
        }
        supervisor
    }

    /// Answers heartbeat requests for ever.
    pub async fn answer_heartbeats(&self) {
        self.heartbeat.answer().await;
    }

    fn ask(&self) {
        let Some(threads) = self.threads.as_ref().filter(|_| self.is_running()) else { return };
        match self.heartbeat.ask() {
            Some(HeartbeatChange::Lost) => {
                tracing::error!(task = self.subject, "stuck: no heartbeat for 3 s");
                threads.health.fail(self.subject.clone(), "no heartbeat for 3 s");
            }
            Some(HeartbeatChange::Recovered) => {
                tracing::info!(task = self.subject, "no longer stuck");
                threads.health.clear(&self.subject);
            }
            None => {}
        }
    }

    /// The name of the work.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Marks the work as running, which clears the problem of an earlier panic.
    pub fn mark_running(&self) {
        if !self.running.swap(true, Relaxed) {
            tracing::info!(task = self.subject, "running again after a panic");
            if let Some(threads) = &self.threads {
                threads.health.clear(&self.subject);
            }
        }
    }

    /// Whether the work runs. False from a panic to the next [`mark_running`](Self::mark_running),
    /// and after the end.
    pub fn is_running(&self) -> bool {
        self.running.load(Relaxed)
    }

    /// Runs `work` until it returns without a panic. On a restart, `work` must check whether it is
    /// still needed. Its state must be valid after a panic at any point.
    pub fn run(&self, mut work: impl FnMut(Attempt)) {
        let (mut delay, mut attempt) = (RESTART_DELAY_MIN, Attempt::First);
        // The panic hook has logged the message.
        while catch_unwind(AssertUnwindSafe(|| work(attempt))).is_err() {
            attempt = Attempt::Restart;
            self.running.store(false, Relaxed);
            tracing::error!(task = self.subject, "panicked and restarts");
            if let Some(threads) = &self.threads {
                threads.health.fail(self.subject.clone(), "it panicked and restarts; see the log");
            }
            std::thread::sleep(delay);
            delay = (delay * 2).min(RESTART_DELAY_MAX);
        }
        self.running.store(false, Relaxed);
    }
}
