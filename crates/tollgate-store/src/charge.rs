//! Charges and adjustments: the input of a store.

use tollgate_core::{Intent, LimitParams, Penalty, Receipt};

/// One limit applied to one request.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'a> {
    /// The limit's id: a hash of its name, key attributes, algorithm and period.
    pub limit: u64,
    /// The values of the key's attributes, encoded so that no two tuples collide.
    pub key: &'a [u8],
    /// The limit's params for this request, tier included.
    pub params: &'a LimitParams,
    /// The id of the params, from [`Store::register_params`](crate::Store::register_params).
    pub params_id: ParamsId,
    /// Units, the limit's own factor included.
    pub cost: u64,
    /// Whether a refusal refuses the request.
    pub mode: ChargeMode,
    /// The penalty for repeated refusals.
    pub penalty: Option<&'a Penalty>,
}

/// A limit as a store knows it, for charges that a store [decides
/// together](crate::Store::decide_together).
#[derive(Clone, Copy, Debug)]
pub struct RegisteredLimit {
    /// The limit's id.
    pub id: u64,
    /// The limit's params.
    pub params: LimitParams,
    /// The id of the params, from [`Store::register_grouped`](crate::Store::register_grouped), or
    /// from [`Store::register_params`](crate::Store::register_params) for a limit that is alone.
    pub params_id: ParamsId,
}

impl RegisteredLimit {
    /// A charge that is enforced and has no penalty.
    #[inline(always)]
    pub const fn charge<'a>(&'a self, key: &'a [u8], cost: u64) -> Charge<'a> {
        Charge {
            limit: self.id,
            key,
            params: &self.params,
            params_id: self.params_id,
            cost,
            mode: ChargeMode::Enforce,
            penalty: None,
        }
    }
}

/// The effect of a limit's refusal on the request, and the charge of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChargeMode {
    /// A refusal refuses the request.
    Enforce,
    /// A refusal is only reported. The limit is charged if the request is admitted and the limit
    /// alone admits.
    Shadow,
    /// A debt: a [`Take`](Intent::Take) charges these units instead of the cost, even if a limit
    /// refuses. The cost still decides whether the limit admits. The row shows the state afterwards
    /// and has no receipt.
    Owe {
        /// The units, at most 2^32 - 1; zero changes nothing.
        units: u64,
        /// Whether a refusal refuses the request.
        enforced: bool,
    },
    /// Like [`Enforce`](Self::Enforce), for a limit with a candidate: its refusal does not prevent
    /// the charge of candidates.
    Replaced,
    /// A candidate: params that would replace a [`Replaced`](Self::Replaced) charge. A refusal is
    /// only reported. Candidates are charged if all candidates and all enforced charges that are
    /// not replaced admit.
    Candidate {
        /// Whether a refusal prevents the charge of other candidates.
        enforced: bool,
    },
}

/// The verdicts on a request: with the limits in force, and with candidates in their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupVerdicts {
    /// Whether the request is admitted.
    pub(crate) admitted: bool,
    /// Whether candidates would admit the request.
    pub(crate) candidates_admit: bool,
}

impl GroupVerdicts {
    pub(crate) const ADMITTED: Self = Self { admitted: true, candidates_admit: true };

    /// Adds the answer of one charge. A block also refuses for candidates.
    #[inline]
    pub(crate) const fn add(&mut self, mode: ChargeMode, admits: bool, blocked: bool) {
        if admits {
            return;
        }
        self.admitted &= !mode.is_enforced();
        self.candidates_admit &= match mode {
            ChargeMode::Replaced => !blocked,
            ChargeMode::Candidate { enforced } => !enforced,
            mode => !mode.is_enforced(),
        };
    }

    /// Whether to charge a charge of this mode that admits by itself.
    #[inline]
    pub(crate) const fn charges(self, mode: ChargeMode) -> bool {
        match mode {
            ChargeMode::Candidate { .. } => self.candidates_admit,
            _ => self.admitted,
        }
    }
}

impl ChargeMode {
    /// Whether a refusal refuses the request.
    #[inline]
    pub const fn is_enforced(self) -> bool {
        matches!(self, Self::Enforce | Self::Replaced | Self::Owe { enforced: true, .. })
    }

    /// The units of a debt.
    #[inline]
    pub const fn owed(self) -> Option<u64> {
        match self {
            Self::Owe { units, .. } => Some(units),
            _ => None,
        }
    }
}

/// A store's own short id for params; zero is always valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ParamsId(pub(crate) u16);

/// The lease settings of a limit: a node takes units in advance and spends them by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseSettings {
    /// The lifetime of granted units.
    pub lifetime_us: u64,
    /// The smallest limit that is leased. The store decides smaller limits.
    pub min_limit: u64,
    /// The grace period: the time without grants after the store lost writes.
    pub grace_us: u64,
    /// The limit's answer in the grace period.
    pub grace_policy: GracePolicy,
}

/// The answer of a leased limit in a grace period, while the store may lack grants of other nodes.
/// Other limits of the request are decided as usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GracePolicy {
    /// The store decides on its state and the grants that nodes have re-asserted.
    #[default]
    Decide,
    /// The limit refuses.
    Refuse,
}

/// The charges of one request, for distinct (limit, key) pairs: all are taken, or none.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The charges, in file order.
    pub charges: &'a [Charge<'a>],
    /// Whether an admitted request is charged.
    pub intent: Intent,
}

/// A change to one (limit, key) that is not subject to admission.
#[derive(Clone, Copy, Debug)]
pub struct Adjustment<'a> {
    /// The state that changes. The row shows a peek with this cost after the change.
    pub charge: Charge<'a>,
    /// The change.
    pub change: Change,
}

/// The change of an [`Adjustment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Gives back units of an earlier charge, unless time has already returned them.
    GiveBack {
        /// The units, at most the receipt's cost.
        units: u64,
        /// The charge's receipt.
        receipt: Receipt,
        /// The params of the charge: a unit is worth what it cost then.
        charged_params: LimitParams,
    },
    /// Charges units even if they do not fit; the excess is a debt.
    Owe {
        /// The units.
        units: u64,
    },
    /// Blocks the key for an operator. The later of two blocks counts.
    Block {
        /// The end of the block, by the caller's clock.
        until_us: u64,
    },
    /// Ends every block of the key, also of a penalty, and clears its violations.
    Unblock,
}
