//! Whether the node is ready, and if not, why.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What `/readyz` tells.
#[derive(Debug, Default)]
pub struct Health {
    state: Mutex<State>,
    ready: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    serving: bool,
    detail: BTreeMap<Cow<'static, str>, Detail>,
}

impl State {
    fn is_ready(&self) -> bool {
        self.serving && !self.detail.values().any(|detail| detail.is_fatal)
    }
}

#[derive(Clone, Debug)]
struct Detail {
    text: Box<str>,
    is_fatal: bool,
}

impl Health {
    /// All listeners are open.
    pub fn set_serving(&self, serving: bool) {
        self.change(|state| state.serving = serving);
    }

    /// Something is wrong that the node can live with, such as a bad file while the last good one is in force.
    pub fn degrade(&self, subject: impl Into<Cow<'static, str>>, text: impl Into<Box<str>>) {
        let detail = Detail { text: text.into(), is_fatal: false };
        self.change(|state| drop(state.detail.insert(subject.into(), detail)));
    }

    /// Something is wrong that should keep traffic away.
    pub fn fail(&self, subject: impl Into<Cow<'static, str>>, text: impl Into<Box<str>>) {
        let detail = Detail { text: text.into(), is_fatal: true };
        self.change(|state| drop(state.detail.insert(subject.into(), detail)));
    }

    /// It is well again.
    pub fn heal(&self, subject: &str) {
        self.change(|state| drop(state.detail.remove(subject)));
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
    pub fn detail(&self) -> Vec<(Cow<'static, str>, Box<str>)> {
        let state = self.lock();
        state
            .detail
            .iter()
            .map(|(subject, detail)| (subject.clone(), detail.text.clone()))
            .collect()
    }

    /// Changes what is known, and tells those who watch, in the order of the changes.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let ready = state.is_ready();
        self.ready.send_if_modified(|known| std::mem::replace(known, ready) != ready);
    }

    /// A panic elsewhere leaves it whole: every change is a single assignment.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
