//! Whether the node is ready, and if not, why.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What `/readyz` tells.
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

impl HealthState {
    fn is_ready(&self) -> bool {
        self.serving && !self.problems.values().any(|detail| detail.is_fatal)
    }
}

#[derive(Clone, Debug)]
struct HealthProblem {
    text: Box<str>,
    is_fatal: bool,
}

impl Health {
    /// All listeners are open.
    pub fn set_serving(&self, serving: bool) {
        self.update(|state| state.serving = serving);
    }

    /// Something is wrong that the node can live with, such as a bad file while the last good one
    /// is in force.
    pub fn degrade(&self, subject: impl Into<Cow<'static, str>>, text: impl Into<Box<str>>) {
        let detail = HealthProblem { text: text.into(), is_fatal: false };
        self.update(|state| drop(state.problems.insert(subject.into(), detail)));
    }

    /// Something is wrong that should keep traffic away.
    pub fn fail(&self, subject: impl Into<Cow<'static, str>>, text: impl Into<Box<str>>) {
        let detail = HealthProblem { text: text.into(), is_fatal: true };
        self.update(|state| drop(state.problems.insert(subject.into(), detail)));
    }

    /// It is well again.
    pub fn clear(&self, subject: &str) {
        self.update(|state| drop(state.problems.remove(subject)));
    }

    /// Whether traffic is welcome.
    pub fn is_ready(&self) -> bool {
        self.lock().is_ready()
    }

    /// The same, and every change of it.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// What there is to say, by subject.
    pub fn problems(&self) -> Vec<(Cow<'static, str>, Box<str>)> {
        let state = self.lock();
        state
            .problems
            .iter()
            .map(|(subject, detail)| (subject.clone(), detail.text.clone()))
            .collect()
    }

    /// Changes what is known, and tells those who watch, in the order of the changes.
    fn update(&self, change: impl FnOnce(&mut HealthState)) {
        let mut state = self.lock();
        change(&mut state);
        let ready = state.is_ready();
        self.ready.send_if_modified(|known| std::mem::replace(known, ready) != ready);
    }

    /// A panic elsewhere leaves it whole: every change is a single assignment.
    fn lock(&self) -> MutexGuard<'_, HealthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
