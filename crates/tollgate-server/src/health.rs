//! Whether the node is ready, and if not, why.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What `/readyz` tells.
#[derive(Debug, Default)]
pub struct Health {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    serving: bool,
    detail: BTreeMap<Cow<'static, str>, Detail>,
}

#[derive(Clone, Debug)]
struct Detail {
    text: Box<str>,
    is_fatal: bool,
}

impl Health {
    /// All listeners are open.
    pub fn set_serving(&self, serving: bool) {
        self.lock().serving = serving;
    }

    /// Something is wrong that the node can live with, such as a bad file while the last good one is in force.
    pub fn degrade(&self, subject: impl Into<Cow<'static, str>>, text: impl Into<Box<str>>) {
        let detail = Detail { text: text.into(), is_fatal: false };
        self.lock().detail.insert(subject.into(), detail);
    }

    /// Something is wrong that should keep traffic away.
    pub fn fail(&self, subject: impl Into<Cow<'static, str>>, text: impl Into<Box<str>>) {
        let detail = Detail { text: text.into(), is_fatal: true };
        self.lock().detail.insert(subject.into(), detail);
    }

    /// It is well again.
    pub fn heal(&self, subject: &str) {
        self.lock().detail.remove(subject);
    }

    /// Whether traffic is welcome.
    pub fn is_ready(&self) -> bool {
        let state = self.lock();
        state.serving && !state.detail.values().any(|detail| detail.is_fatal)
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

    /// A panic elsewhere leaves it whole: every change is a single assignment.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
