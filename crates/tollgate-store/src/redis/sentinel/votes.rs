//! What the sentinels said, and which server follows from it.

use crate::redis::client::endpoint::ServerAddress;
use crate::redis::client::failure::{Failure, FailureAction};
use crate::{StoreError, StoreErrorKind};
use std::cmp::Reverse;

/// A primary, as a sentinel names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Primary {
    pub(super) address: ServerAddress,
    /// The number of the configuration that made it the primary: it grows with every failover. Zero
    /// where it is not known.
    pub(super) epoch: u64,
}

/// What they said.
#[derive(Debug)]
pub(super) struct Votes {
    asked: usize,
    /// With how many of them name it, at the newest epoch of those.
    named: Vec<(Primary, usize)>,
    failed: Vec<(ServerAddress, StoreError)>,
}

impl Votes {
    pub(super) const fn new(asked: usize) -> Self {
        Self { asked, named: Vec::new(), failed: Vec::new() }
    }

    pub(super) fn add(&mut self, primary: Primary) {
        match self.named.iter_mut().find(|(named, _)| named.address == primary.address) {
            None => self.named.push((primary, 1)),
            Some((named, count)) => {
                named.epoch = named.epoch.max(primary.epoch);
                *count += 1;
            }
        }
    }

    pub(super) fn fail(&mut self, sentinel: &ServerAddress, error: StoreError) {
        self.failed.push((sentinel.clone(), error));
    }

    /// The one that most of all sentinels name, those included that did not answer.
    pub(super) fn majority(&self) -> Option<&Primary> {
        let most = |(_, count): &&(Primary, usize)| count * 2 > self.asked;
        self.named.iter().find(most).map(|(primary, _)| primary)
    }

    /// The one that connections to a primary that answers are given up for: what most name, or most
    /// of those who answered, if it is newer. A sentinel that was cut off from the others names an
    /// older one, and nobody follows a single one against the word of others.
    pub(super) fn new_primary(&self, settled: &Primary) -> Option<Primary> {
        let answered: usize = self.named.iter().map(|(_, count)| count).sum();
        let newer = |(primary, count): &&(Primary, usize)| {
            count * 2 > answered && primary.epoch > settled.epoch
        };
        let newer = || self.named.iter().find(newer).map(|(primary, _)| primary);
        self.majority().or_else(newer).cloned()
    }

    /// Which servers to try, in this order. Where another connection is up, only one that it would
    /// be given up for, or the same again.
    pub(super) fn candidates(&self, settled: Option<&Primary>, cut_off: bool) -> Vec<Primary> {
        let entitled = match settled {
            None => self.majority().cloned(),
            Some(settled) => self.new_primary(settled),
        };
        let is = |one: Option<&Primary>, other: &Primary| {
            one.is_some_and(|one| one.address == other.address)
        };
        let mut all: Vec<_> = self
            .named
            .iter()
            .filter(|(one, _)| cut_off || is(entitled.as_ref(), one) || is(settled, one))
            .collect();
        all.sort_by_key(|(one, count)| {
            (!is(entitled.as_ref(), one), Reverse(one.epoch), Reverse(*count))
        });
        all.into_iter().map(|(one, _)| one.clone()).collect()
    }

    /// Why there is nothing to try.
    pub(super) fn failure(&self, master: &str) -> Failure {
        let mut text = String::from("no sentinel says where the primary is");
        if !self.named.is_empty() {
            text = format!("the sentinels do not agree on where {master} is");
        }
        let mut told: Vec<String> = Vec::new();
        for (address, error) in &self.failed {
            let why = reason(error);
            // Most often they all have the same to say.
            if !told.contains(&why) {
                text.push_str(&format!("; {address}: {why}"));
                told.push(why);
            }
        }
        let rejected = self.failed.iter().any(|(_, one)| one.kind == StoreErrorKind::Rejected);
        let kind = match rejected {
            true => StoreErrorKind::Rejected,
            false => StoreErrorKind::Unreachable,
        };
        Failure { error: StoreError::new(kind, text), action: FailureAction::Reconnect }
    }
}

/// What one sentinel had to say, with what to do about it.
fn reason(error: &StoreError) -> String {
    match &*error.detail {
        "" => error.to_string(),
        text if text.starts_with("NOAUTH") => format!("{text}, which is `sentinel.password`"),
        text if text.contains("credentials") => {
            format!("{text}, which are `sentinel.username` and `sentinel.password`")
        }
        detail => detail.into(),
    }
}

#[cfg(test)]
mod tests;
