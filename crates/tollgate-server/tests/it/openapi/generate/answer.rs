//! Types of answers. The server writes them with its own `encode`; tests compare the two.

use super::request::Reservation;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The answer to a check or a peek, and to a reserve that was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Verdict {
    /// Whether the request is admitted.
    pub(crate) allowed: bool,
    /// How long to delay the request; more than zero only with a `queue`.
    pub(crate) delay: Seconds,
    /// The time until the same request would be admitted; null if no wait helps.
    pub(crate) retry_after: Option<Seconds>,
    /// The source of the decision.
    pub(crate) source: Source,
    /// Every limit that applied, in the order of the file.
    pub(crate) limits: Vec<LimitAnswer>,
}

/// The answer to a reserve that was admitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reserved {
    /// The members of an answer to a check.
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
    /// The reservation to settle or cancel.
    pub(crate) reservation: Reservation,
    /// The time to live. Afterwards the charge stays, and slots are free again.
    pub(crate) expires_after: Seconds,
}

/// The answer to a settle or a cancel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Settled {
    /// The reservation.
    pub(crate) reservation: Reservation,
    /// The final cost; 0 if the reservation was cancelled.
    pub(crate) charged: u64,
    /// Every limit that was charged, in the order of the file.
    pub(crate) limits: Vec<LimitAnswer>,
}

/// The decision of one limit by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Limit")]
pub(crate) struct LimitAnswer {
    /// The name of the limit in the file.
    pub(crate) name: String,
    /// Whether the limit admits the request.
    pub(crate) allowed: bool,
    /// The capacity; null if the limit does not disclose its figures.
    pub(crate) limit: Option<u64>,
    /// The remaining units; null if the limit does not disclose its figures.
    pub(crate) remaining: Option<u64>,
    /// The time until the full capacity is back or a block ends; null if not disclosed.
    pub(crate) reset_after: Option<Seconds>,
    /// The time until the limit would admit the same request; null if no wait helps.
    pub(crate) retry_after: Option<Seconds>,
    /// Whether the limit is enforced.
    pub(crate) mode: Mode,
    /// The source of the limit's decision.
    pub(crate) source: Source,
}

/// Whether a limit is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// A refusal by the limit refuses the request.
    Enforce,
    /// The limit is evaluated, and never refuses the request.
    Shadow,
}

/// The source of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Source {
    /// The shared store.
    Store,
    /// This process.
    Memory,
    /// Units that this process leased from the store.
    Lease,
    /// A cached refusal; its figures are at most `max_age` old.
    DenyCache,
    /// The store failed, and the limit admits without it.
    FailOpen,
    /// The store failed, and the limit refuses without it.
    FailClosed,
    /// The store failed, and this process enforced its share.
    LocalFallback,
    /// A shadow limit would have refused.
    Shadow,
    /// The key is blocked.
    Blocked,
    /// The request was shed, because the service is overloaded.
    Shed,
    /// No limit applied.
    None,
}

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Problem {
    /// The type of the problem; `about:blank` if the status is enough.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The status in words.
    pub(crate) title: String,
    /// The status.
    #[schemars(range(min = 400, max = 599))]
    pub(crate) status: u16,
    /// The error, and how to fix it.
    pub(crate) detail: String,
    /// The invalid member of the body, such as `attributes.ip`, or part of the request.
    pub(crate) field: String,
}

/// A time in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Seconds(pub(crate) serde_json::Number);

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
