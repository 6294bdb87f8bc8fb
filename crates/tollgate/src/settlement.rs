//! Settlement: the change from a charge to its actual cost.

use tollgate_core::{LimitParams, Receipt};
use tollgate_store::Change;

/// The change at the end of a charge of `charged` units with the actual cost `cost`. Slots are
/// always given back.
pub(crate) fn settle(
    params: &LimitParams,
    receipt: Option<Receipt>,
    charged: u64,
    cost: u64,
) -> Change {
    // A charge without a receipt cannot be given back.
    let receipt = receipt.unwrap_or_default();
    let cost = if matches!(params, LimitParams::Concurrency(_)) { 0 } else { cost };
    match cost.checked_sub(charged) {
        Some(units @ 1..) => Change::Owe { units },
        _ => {
            let units = (charged - cost.min(charged)).min(receipt.cost);
            Change::GiveBack { units, receipt, charged_params: *params }
        }
    }
}
