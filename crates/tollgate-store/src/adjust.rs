//! What a settlement, a cancellation or a refund asks of a store.

use crate::Charge;
use tollgate_core::{LimitParams, Receipt};

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
