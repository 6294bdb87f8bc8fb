//! Replies of the scripts that decide and adjust.

use super::rows::invalid_reply;
use crate::StoreError;
use redis::Value;

/// The reply of `decide.lua`.
#[derive(Debug)]
pub(crate) struct DecideReply {
    pub(crate) now_us: u64,
    /// `1` or `0` for each request.
    pub(crate) verdicts: Vec<u8>,
    /// The values before the decisions, by key.
    pub(crate) values: Vec<Option<Vec<u8>>>,
    /// Outcomes of limits with an expiry log, in request order.
    pub(crate) outcomes: Vec<Vec<u8>>,
}

/// The reply of `adjust.lua`.
#[derive(Debug)]
pub(crate) struct AdjustReply {
    pub(crate) now_us: u64,
    /// The value of each change's key afterwards.
    pub(crate) values: Vec<Option<Vec<u8>>>,
    pub(crate) outcomes: Vec<Vec<u8>>,
    /// For each change, the receipt of a new debt.
    pub(crate) receipts: Vec<Option<Vec<u8>>>,
}

impl DecideReply {
    pub(crate) fn read(value: Value) -> Result<Self, StoreError> {
        let read = || {
            let [now, verdicts, values, outcomes] = parts(value)?;
            let outcomes = list(outcomes)?.into_iter().collect::<Option<_>>()?;
            let (verdicts, values) = (bytes(verdicts)??, list(values)?);
            Some(Self { now_us: instant(now)?, verdicts, values, outcomes })
        };
        read().ok_or_else(invalid_reply)
    }
}

impl AdjustReply {
    pub(crate) fn read(value: Value) -> Result<Self, StoreError> {
        let read = || {
            let [now, values, outcomes, receipts] = parts(value)?;
            let outcomes = list(outcomes)?.into_iter().collect::<Option<_>>()?;
            let (values, receipts) = (list(values)?, list(receipts)?);
            Some(Self { now_us: instant(now)?, values, outcomes, receipts })
        };
        read().ok_or_else(invalid_reply)
    }
}

fn parts(value: Value) -> Option<[Value; 4]> {
    match value {
        Value::Array(parts) => parts.try_into().ok(),
        _ => None,
    }
}

fn list(value: Value) -> Option<Vec<Option<Vec<u8>>>> {
    match value {
        Value::Array(items) => items.into_iter().map(bytes).collect(),
        _ => None,
    }
}

pub(crate) fn bytes(value: Value) -> Option<Option<Vec<u8>>> {
    match value {
        Value::BulkString(bytes) => Some(Some(bytes)),
        Value::SimpleString(text) => Some(Some(text.into_bytes())),
        Value::Nil => Some(None),
        _ => None,
    }
}

fn instant(value: Value) -> Option<u64> {
    str::from_utf8(&bytes(value)??).ok()?.parse().ok()
}
