//! Health: whether the node is ready, and its problems by subject.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Locks `mutex`. No holder leaves the value half changed, so poisoning is ignored.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state behind `/readyz`.
#[derive(Debug, Default)]
pub struct Health {
    state: Mutex<HealthState>,
    ready: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct HealthState {
    serving: bool,
    problems: BTreeMap<Cow<'static, str>, HealthProblem>,
}

#[derive(Clone, Debug)]
struct HealthProblem {
    text: Box<str>,
    is_fatal: bool,
}

impl HealthState {
    fn is_ready(&self) -> bool {
        self.serving && !self.problems.values().any(|problem| problem.is_fatal)
    }
}

impl Health {
    /// Sets whether all listeners are open.
    pub fn set_serving(&self, serving: bool) {
        self.update(|state| state.serving = serving);
    }

    /// Reports a problem that leaves the node ready, such as a bad file while the last good one is
    /// in force.
    pub fn degrade(&self, subject: impl Into<Cow<'static, str>>, text: impl Into<Box<str>>) {
        self.report(subject.into(), HealthProblem { text: text.into(), is_fatal: false });
    }

    /// Reports a problem that makes the node not ready.
    pub fn fail(&self, subject: impl Into<Cow<'static, str>>, text: impl Into<Box<str>>) {
        self.report(subject.into(), HealthProblem { text: text.into(), is_fatal: true });
    }

    fn report(&self, subject: Cow<'static, str>, problem: HealthProblem) {
        self.update(|state| drop(state.problems.insert(subject, problem)));
    }

    /// Removes the problem of a subject.
    pub fn clear(&self, subject: &str) {
        self.update(|state| drop(state.problems.remove(subject)));
    }

    /// Whether the node accepts traffic.
    pub fn is_ready(&self) -> bool {
        lock(&self.state).is_ready()
    }

    /// Watches whether the node accepts traffic.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// The problems by subject.
    pub fn problems(&self) -> Vec<(Cow<'static, str>, Box<str>)> {
        let state = lock(&self.state);
        let problems = state.problems.iter();
        problems.map(|(subject, problem)| (subject.clone(), problem.text.clone())).collect()
    }

    /// Changes the state and notifies watchers in the order of changes.
    fn update(&self, change: impl FnOnce(&mut HealthState)) {
        let mut state = lock(&self.state);
        change(&mut state);
        let ready = state.is_ready();
        self.ready.send_if_modified(|known| std::mem::replace(known, ready) != ready);
    }
}

#[cfg(test)]
mod tests;
