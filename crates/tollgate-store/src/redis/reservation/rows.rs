//! Rows saved in a record, so that a repeated call gets the same answer.

use crate::{Answer, Origin};
use redis::Value;
use tollgate_core::{Outcome, Receipt};

/// Numbers per row; the last one is unused.
const ROW_NUMBERS: usize = 12;

pub(crate) fn write(rows: &[Answer]) -> Vec<u8> {
    let optional = |value: Option<u64>| value.map_or(u64::MAX, |value| value.min(u64::MAX - 1));
    let numbers = rows.iter().flat_map(|row| {
        let Outcome { admitted, limit, remaining, reset_after_us, delay_us, .. } = row.outcome;
        let flags = u64::from(admitted) | u64::from(row.blocked) << 1;
        let flags = flags | u64::from(row.receipt.is_some()) << 2;
        let waits = [row.outcome.retry_after_us, row.outcome.more_after_us].map(optional);
        let Receipt { cost, at_us, mark_us, mark_fraction, .. } = row.receipt.unwrap_or_default();
        let of_receipt = [cost, at_us, mark_us, mark_fraction.into()];
        let head = [flags, limit, remaining, reset_after_us, delay_us, waits[0], waits[1]];
        head.into_iter().chain(of_receipt).chain([0])
    });
    numbers.flat_map(u64::to_be_bytes).collect()
}

/// Reads saved rows; `None` if the record has none.
pub(crate) fn read(reply: &Value) -> Option<Vec<Answer>> {
    let Value::Array(parts) = reply else { return None };
    let [Value::BulkString(bytes)] = parts.as_slice() else { return None };
    let numbers: Vec<u64> =
        bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_be_bytes(*bytes)).collect();
    let rows = numbers.as_chunks::<ROW_NUMBERS>().0.iter();
    rows.map(
        |&[
            flags,
            limit,
            remaining,
            reset_after_us,
            delay_us,
            retry,
            more,
            cost,
            at_us,
            mark_us,
            fraction,
            _,
        ]| {
            let optional = |value: u64| (value != u64::MAX).then_some(value);
            let mark_fraction = u32::try_from(fraction).ok()?;
            let receipt = Receipt { cost, at_us, mark_us, mark_fraction, is_shared: false };
            let mut outcome = Outcome::admitting(limit);
            outcome.admitted = flags & 1 == 1;
            outcome.remaining = remaining;
            outcome.retry_after_us = optional(retry);
            outcome.reset_after_us = reset_after_us;
            outcome.delay_us = delay_us;
            outcome.more_after_us = optional(more);
            Some(Answer {
                outcome,
                blocked: flags >> 1 & 1 == 1,
                receipt: (flags >> 2 & 1 == 1).then_some(receipt),
                origin: Origin::State,
            })
        },
    )
    .collect()
}
