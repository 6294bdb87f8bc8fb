//! What a store is asked.

use tollgate_core::{Intent, LimitParams, Penalty, Receipt};

/// One limit applied to one request.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'a> {
    /// Whose state it is: a hash of the limit's name, key attributes, algorithm and period.
    pub limit: u64,
    /// The values of the key's attributes, encoded so that no two tuples collide.
    pub key: &'a [u8],
    /// The limit's numbers for this request, tier included.
    pub params: &'a LimitParams,
    /// What [`Store::register_params`](crate::Store::register_params) answered for these numbers.
    pub params_id: ParamsId,
    /// Units, the limit's own factor included.
    pub cost: u64,
    /// Whether a refusal counts.
    pub mode: Mode,
    /// What repeated refusals lead to.
    pub penalty: Option<&'a Penalty>,
}

/// Whether a limit's refusal refuses the request, and what is taken from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// It does.
    Enforce,
    /// It is only reported; the limit is charged when the request is admitted and the limit alone
    /// would admit.
    Shadow,
    /// A [`Take`](Intent::Take) takes these units whatever this limit or any other says, in place
    /// of the cost: what was used has been used. The cost still says whether the limit admits. The
    /// row shows the numbers afterwards and has no receipt.
    Owe {
        /// How many units, at most 2^32 - 1 as everywhere; none leaves the limit as it is.
        units: u64,
        /// Whether a refusal refuses the request.
        enforced: bool,
    },
}

impl Mode {
    /// Whether a refusal refuses the request.
    #[inline]
    pub const fn is_enforced(self) -> bool {
        matches!(self, Self::Enforce | Self::Owe { enforced: true, .. })
    }

    /// What is taken whatever anyone says.
    #[inline]
    pub const fn owed(self) -> Option<u64> {
        match self {
            Self::Enforce | Self::Shadow => None,
            Self::Owe { units, .. } => Some(units),
        }
    }
}

/// A store's own short name for a set of numbers; zero is always valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ParamsId(pub(crate) u16);

/// How a limit is leased: a node takes chunks of it in advance and decides by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseSettings {
    /// How long a chunk can be spent.
    pub lifetime_us: u64,
    /// Limits below this are decided by the store.
    pub min_limit: u64,
    /// How long nothing is granted after the store has forgotten something.
    pub quiet_us: u64,
    /// What the limit says meanwhile.
    pub grace_policy: GracePolicy,
}

/// What a leased limit says while the store may have forgotten what nodes hold. The request's other
/// limits are decided as ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GracePolicy {
    /// The request is not decided at all.
    #[default]
    Fail,
    /// It admits, and takes nothing.
    Admit,
    /// It refuses.
    Refuse,
}

/// The charges of one request, for distinct (limit, key) pairs. They are taken together or not at
/// all.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// In file order.
    pub charges: &'a [Charge<'a>],
    /// Whether admission consumes.
    pub intent: Intent,
}

/// A change to one (limit, key) that is not subject to admission.
#[derive(Clone, Copy, Debug)]
pub struct Adjustment<'a> {
    /// Whose state changes. Its cost is the one for which the row afterwards answers, as a peek
    /// does.
    pub charge: Charge<'a>,
    /// What changes.
    pub change: Change,
}

/// What an [`Adjustment`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Returns units of an earlier charge, as far as time has not returned them already.
    GiveBack {
        /// How many, at most the receipt's cost.
        units: u64,
        /// What the charge left.
        receipt: Receipt,
        /// The numbers it was charged under, which may not be those of now: a unit is worth what it
        /// cost then.
        charged_params: LimitParams,
    },
    /// Takes units whether or not they fit; what does not fit is a debt.
    Owe {
        /// How many.
        units: u64,
    },
    /// Refuses the key until then, whatever the limit says; an operator's word, beside those of
    /// penalties. The later of two counts.
    Block {
        /// The end of it, by the clock of whoever asks.
        until_us: u64,
    },
    /// Ends every block of the key, a penalty's included, and forgets the refusals that led to it.
    Unblock,
}
