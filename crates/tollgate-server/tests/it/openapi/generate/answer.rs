//! Answers as types. The server writes them with its own `encode`; tests hold the two together.

use super::request::Reservation;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The answer to a check or a peek, and to a reserve that was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Verdict {
    /// Whether the request may go on.
    pub(crate) allowed: bool,
    /// How long it should wait before it goes on; more than zero only with a `queue`.
    pub(crate) delay: Seconds,
    /// After which time the same request would be admitted; null when no wait can help.
    pub(crate) retry_after: Option<Seconds>,
    /// Where the decision comes from.
    pub(crate) source: Source,
    /// Every limit that applied, in the order of the file.
    pub(crate) limits: Vec<LimitAnswer>,
}

/// The answer to a reserve that was admitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reserved {
    /// What is also said of a check.
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
    /// What to settle or cancel.
    pub(crate) reservation: Reservation,
    /// How long there is to do so. Afterwards the charge stays and slots are free again.
    pub(crate) expires_after: Seconds,
}

/// The answer to a settle or a cancel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Settled {
    /// Which reservation.
    pub(crate) reservation: Reservation,
    /// What it cost in the end; 0 when it was cancelled.
    pub(crate) charged: u64,
    /// Every limit that it was charged to, in the order of the file.
    pub(crate) limits: Vec<LimitAnswer>,
}

/// What one limit says, whatever the others say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Limit")]
pub(crate) struct LimitAnswer {
    /// Its name in the file.
    pub(crate) name: String,
    /// Whether it admits the request.
    pub(crate) allowed: bool,
    /// How much it admits at most; null when it does not disclose its figures.
    pub(crate) limit: Option<u64>,
    /// How much it would still admit now; null when it does not disclose its figures.
    pub(crate) remaining: Option<u64>,
    /// After which time all of it is there again or a block ends; null when not disclosed.
    pub(crate) reset_after: Option<Seconds>,
    /// After which time it would admit the same request; null when no wait can help.
    pub(crate) retry_after: Option<Seconds>,
    /// Whether its refusal counts.
    pub(crate) mode: Mode,
    /// Where its answer comes from.
    pub(crate) source: Source,
}

/// Whether a limit's refusal refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// It does.
    Enforce,
    /// It is only told.
    Shadow,
}

/// Where a decision comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Source {
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
    /// The service is overloaded, whatever the limits say.
    Shed,
    /// Nothing applied.
    None,
}

/// Why a call was not answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Problem {
    /// Which kind of problem; `about:blank` when the status says it all.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The status in words.
    pub(crate) title: String,
    /// The status.
    #[schemars(range(min = 400, max = 599))]
    pub(crate) status: u16,
    /// What is wrong, and what to do about it.
    pub(crate) detail: String,
    /// The member of the body to look at, such as `attributes.ip`, or the part of the request.
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
