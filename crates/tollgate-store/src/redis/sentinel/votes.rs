//! The sentinels' answers, and the primary that follows from them.

use crate::redis::client::endpoint::ServerAddress;
use crate::redis::client::failure::{Failure, FailureAction};
use crate::{StoreError, StoreErrorKind};
use std::cmp::Reverse;

/// A primary, as a sentinel names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Primary {
    pub(super) address: ServerAddress,
    /// The configuration epoch in which the server became primary; grows with every failover. Zero
    /// if unknown.
    pub(super) epoch: u64,
}

/// The sentinels' answers.
#[derive(Debug)]
pub(super) struct Votes {
    asked: usize,
    /// Each named primary, with the number of sentinels that name it and their newest epoch.
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

    /// The server that more than half of all sentinels name, silent ones included.
    pub(super) fn majority(&self) -> Option<&Primary> {
        let most = |(_, count): &&(Primary, usize)| count * 2 > self.asked;
        self.named.iter().find(most).map(|(primary, _)| primary)
    }

    /// The primary that replaces `current` even while it answers: the majority's choice, or a newer
    /// one that most answers name. An isolated sentinel names an older one.
    pub(super) fn new_primary(&self, current: &Primary) -> Option<Primary> {
        let answered: usize = self.named.iter().map(|(_, count)| count).sum();
        let newer = |(primary, count): &&(Primary, usize)| {
            count * 2 > answered && primary.epoch > current.epoch
        };
        let newer = || self.named.iter().find(newer).map(|(primary, _)| primary);
        self.majority().or_else(newer).cloned()
    }

    /// The servers to try, in order. While another connection is up, only `current` and its
    /// replacement.
    pub(super) fn candidates(&self, current: Option<&Primary>, cut_off: bool) -> Vec<Primary> {
        let chosen = match current {
            None => self.majority().cloned(),
            Some(current) => self.new_primary(current),
        };
        let is = |one: Option<&Primary>, other: &Primary| {
            one.is_some_and(|one| one.address == other.address)
        };
        let mut all: Vec<_> = self
            .named
            .iter()
            .filter(|(one, _)| cut_off || is(chosen.as_ref(), one) || is(current, one))
            .collect();
        all.sort_by_key(|(one, count)| {
            (!is(chosen.as_ref(), one), Reverse(one.epoch), Reverse(*count))
        });
        all.into_iter().map(|(one, _)| one.clone()).collect()
    }

    /// The error when there is no candidate.
    pub(super) fn failure(&self, master: &str) -> Failure {
        let mut text = String::from("no sentinel says where the primary is");
        if !self.named.is_empty() {
            text = format!("the sentinels do not agree on where {master} is");
        }
        let mut reasons: Vec<String> = Vec::new();
        for (address, error) in &self.failed {
            let reason = reason(error);
            // Most sentinels fail for the same reason.
            if !reasons.contains(&reason) {
                text.push_str(&format!("; {address}: {reason}"));
                reasons.push(reason);
            }
        }
        let rejected = self.failed.iter().any(|(_, one)| one.kind == StoreErrorKind::Rejected);
        let kind = if rejected { StoreErrorKind::Rejected } else { StoreErrorKind::Unreachable };
        Failure::new(kind, FailureAction::Reconnect, &text)
    }
}

/// One sentinel's error, with the setting that fixes it.
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
