//! What a client may be answered, as types. The server writes answers with
//! [`encode`](super::super::encode), a byte at a time; tests hold the two together.

use super::request::Reservation;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The answer to a check or a peek, and to a reserve that was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether the request may go on.
    pub allowed: bool,
    /// How long it should wait before it goes on; more than zero only with a `queue`.
    pub delay: Seconds,
    /// After which time the same request would be admitted; null when no wait can help.
    pub retry_after: Option<Seconds>,
    /// Where the decision comes from.
    pub source: Source,
    /// Every limit that applied, in the order of the file.
    pub limits: Vec<LimitAnswer>,
}

/// The answer to a reserve that was admitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Reserved {
    /// What is also said of a check.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What to settle or cancel.
    pub reservation: Reservation,
    /// How long there is to do so. Afterwards the charge stays and slots are free again.
    pub expires_after: Seconds,
}

/// The answer to a settle or a cancel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Settled {
    /// Which reservation.
    pub reservation: Reservation,
    /// What it cost in the end; 0 when it was cancelled.
    pub charged: u64,
    /// Every limit that it was charged to, in the order of the file.
    pub limits: Vec<LimitAnswer>,
}

/// What one limit says, whatever the others say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Limit")]
#[non_exhaustive]
pub struct LimitAnswer {
    /// Its name in the file.
    pub name: String,
    /// Whether it admits the request.
    pub allowed: bool,
    /// How much it admits at most; null when it does not disclose its figures.
    pub limit: Option<u64>,
    /// How much it would still admit now; null when it does not disclose its figures.
    pub remaining: Option<u64>,
    /// After which time all of it is there again or a block ends; null when not disclosed.
    pub reset_after: Option<Seconds>,
    /// After which time it would admit the same request; null when no wait can help.
    pub retry_after: Option<Seconds>,
    /// Whether its refusal counts.
    pub mode: Mode,
    /// Where its answer comes from.
    pub source: Source,
}

/// Whether a limit's refusal refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Mode {
    /// It does.
    Enforce,
    /// It is only told.
    Shadow,
}

/// Where a decision comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Source {
    /// The shared store.
    Store,
    /// This process.
    Memory,
    /// A chunk that this process took from the store in advance.
    Lease,
    /// An earlier refusal that still holds; figures are at most `max_age` old.
    DenyCache,
    /// The store could not decide, and the limit then admits.
    FailOpen,
    /// The store could not decide, and the limit then refuses.
    FailClosed,
    /// The store could not decide, and this process enforced its share.
    LocalFallback,
    /// A shadow limit would have refused.
    Shadow,
    /// The key is blocked.
    Blocked,
    /// Nothing applied.
    None,
}

/// Why a call was not answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Problem {
    /// Which kind of problem; `about:blank` when the status says it all.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The status.
    #[schemars(range(min = 400, max = 599))]
    pub status: u16,
    /// What is wrong, and what to do about it.
    pub detail: String,
    /// The member of the body to look at, such as `cost` or `attributes.ip`, or the part of the
    /// request.
    pub field: String,
}

/// A time in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seconds(pub serde_json::Number);

impl JsonSchema for Seconds {
    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0})
    }
}
