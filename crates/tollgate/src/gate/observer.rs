//! Observers: see each charge that a gate decides, and units that are given back later.

use super::Gate;
use crate::engine::{Rules, Source};
use std::fmt;
use tollgate_core::{LimitParams, Outcome};
use tollgate_policy::policy::Selected;
use tollgate_store::{Adjustment, Change, Charge, Store};

/// Sees what a gate decides. Called by the thread that decides, so it must neither block nor call
/// the gate.
pub trait DecisionObserver: fmt::Debug + Send + Sync {
    /// These limits answered one request that takes units. Peeks are not observed.
    fn decided(&self, decisions: &[ObservedDecision<'_>]);

    /// An earlier charge was settled to more or less, or undone. The end of a slot of a
    /// concurrency limit is not observed.
    fn adjusted(&self, adjustment: &ObservedAdjustment<'_>);

    /// An admitted request holds charges under this id until the reservation ends.
    fn reserved(&self, now_us: u64, id: &str, ttl_us: u64, charges: &[ReservedUnits<'_>]);

    /// The reservation ended with the real units of each of its charges, in their order.
    fn ended(&self, now_us: u64, id: &str, units: &[u64]);
}

/// One limit's answer to one request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ObservedDecision<'a> {
    /// The time of the decision.
    pub now_us: u64,
    /// The limit, its key and its tier.
    pub selected: &'a Selected<'a>,
    /// The rules in force.
    pub rules: &'a Rules,
    /// The requested units.
    pub asked: u64,
    /// Units that were taken. Zero if this limit or another one refused, unless the limit counts
    /// refused requests too.
    pub taken: u64,
    /// The figures of the limit.
    pub outcome: &'a Outcome,
    /// The source of its answer.
    pub source: Source,
    /// Whether this limit refused the request. A shadow limit never does.
    pub refuses: bool,
}

impl<'a> ObservedDecision<'a> {
    /// The name of the request's tier.
    pub fn tier(&self) -> Option<&'a str> {
        self.rules.tier_of(self.selected).map(|tier| &**tier)
    }
}

/// A change of an earlier charge.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ObservedAdjustment<'a> {
    /// The time.
    pub now_us: u64,
    /// The id of the state: see [`Selected::id`].
    pub state_id: u64,
    /// The name of the request's tier, at the time of the charge.
    pub tier: Option<&'a str>,
    /// The encoded key.
    pub key: &'a [u8],
    /// Units that were given back.
    pub given_back: u64,
    /// Units that were taken in addition.
    pub taken: u64,
}

/// A charge of a reservation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReservedUnits<'a> {
    /// The id of the state: see [`Selected::id`].
    pub state_id: u64,
    /// The name of the request's tier.
    pub tier: Option<&'a str>,
    /// The encoded key.
    pub key: &'a [u8],
    /// The units that were taken.
    pub units: u64,
}

impl<'a> ReservedUnits<'a> {
    pub(crate) fn new(charge: &Charge<'a>, tier: Option<&'a str>, units: u64) -> Self {
        Self { state_id: charge.limit, tier, key: charge.key, units }
    }
}

/// The charge of an adjustment, as observers know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdjustedCharge<'a> {
    /// See [`Selected::id`]. The fallback store may know the state by another id.
    pub(crate) state_id: u64,
    pub(crate) tier: Option<&'a str>,
}

impl<S: Store> Gate<S> {
    /// Shows settlements to the observer.
    pub(super) fn observe_adjustments(
        &self,
        now_us: u64,
        adjustments: &[Adjustment<'_>],
        adjusted: &[AdjustedCharge<'_>],
    ) {
        let Some(observer) = &self.observer else { return };
        for (Adjustment { charge, change }, adjusted) in adjustments.iter().zip(adjusted) {
            let (given_back, taken) = match change {
                Change::GiveBack { charged_params: LimitParams::Concurrency(_), .. } => continue,
                Change::GiveBack { units, .. } => (*units, 0),
                Change::Owe { units } => (0, *units),
                Change::Block { .. } | Change::Unblock => continue,
            };
            if given_back + taken > 0 {
                let (AdjustedCharge { state_id, tier }, key) = (*adjusted, charge.key);
                let seen = ObservedAdjustment { now_us, state_id, tier, key, given_back, taken };
                observer.adjusted(&seen);
            }
        }
    }
}
