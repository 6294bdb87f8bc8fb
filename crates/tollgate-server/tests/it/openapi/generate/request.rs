//! Types of requests. The server reads bodies with its own `decode`; tests compare the two.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use tollgate_server::front::http::decode::{
    ATTRIBUTES_MAX, NAME_BYTES_MAX, RESERVATION_BYTES_MAX, VALUE_BYTES_MAX,
};

/// The body of a check or a peek.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckRequest {
    /// The attributes of the request to decide.
    #[serde(default)]
    pub(crate) attributes: Attributes,
    /// The cost of the request; each limit multiplies it by its own cost.
    #[serde(default = "one")]
    #[schemars(range(max = u64::MAX))]
    pub(crate) cost: u64,
}

/// The body of a reserve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReserveRequest {
    /// The attributes of the request to decide.
    #[serde(default)]
    pub(crate) attributes: Attributes,
    /// The estimated cost; each limit multiplies it by its own cost.
    #[serde(default = "one")]
    #[schemars(range(max = u64::MAX))]
    pub(crate) cost: u64,
    /// The time to live; by default the `ttl` of the limit, else 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ttl")]
    pub(crate) ttl: Option<Ttl>,
}

/// The body of a settle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettleRequest {
    /// The `reservation` from the answer to the reserve.
    pub(crate) reservation: Reservation,
    /// The real cost. It may exceed the estimate, and may leave a limit in debt.
    #[schemars(range(max = u32::MAX))]
    pub(crate) cost: u32,
    /// The duration of the work, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Latency")]
    pub(crate) latency: Option<Latency>,
    /// The state of the service, for the adaptive shedder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SettleOutcome")]
    pub(crate) outcome: Option<SettleOutcome>,
}

/// A time in seconds, at most an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latency(serde_json::Number);

impl JsonSchema for Latency {
    fn schema_name() -> Cow<'static, str> {
        "Latency".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0, "maximum": 3600})
    }
}

/// The state of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SettleOutcome {
    /// The service did the work, with any result.
    Ok,
    /// The service was overloaded.
    Overloaded,
}

/// The body of a cancel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelRequest {
    /// The `reservation` from the answer to the reserve.
    pub(crate) reservation: Reservation,
}

const fn one() -> u64 {
    1
}

/// Names and values, such as `user`, `ip`, `method` and `path`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Attributes(pub(crate) BTreeMap<String, String>);

impl JsonSchema for Attributes {
    fn schema_name() -> Cow<'static, str> {
        "Attributes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": format!(
                "Names and values. The policy says which of them count; the others are ignored. `ip` is an address, \
                 `method`, `host` and `path` are brought into one form, `api_key` is hashed. An empty value is an absent \
                 one. A name has at most {NAME_BYTES_MAX} bytes in UTF-8, a value {VALUE_BYTES_MAX}."
            ),
            "type": "object",
            "maxProperties": ATTRIBUTES_MAX,
            "propertyNames": {"minLength": 1, "maxLength": NAME_BYTES_MAX},
            "properties": {
                "ip": {"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}, {"maxLength": 0}]}
            },
            "additionalProperties": {"type": "string", "maxLength": VALUE_BYTES_MAX},
            "examples": [{"user": "42", "path": "/api/x"}],
        })
    }
}

/// A duration from 1ms to 1h, as the file writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Ttl(pub(crate) String);

impl JsonSchema for Ttl {
    fn schema_name() -> Cow<'static, str> {
        "Ttl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A whole number and a unit, from 1ms to 1h.",
            "type": "string",
            "pattern": "^0*(([1-9][0-9]{0,5}|[12][0-9]{6}|3[0-5][0-9]{5}|3600000)ms\
                |([1-9][0-9]{0,2}|[12][0-9]{3}|3[0-5][0-9]{2}|3600)(s|sec|secs)\
                |([1-9]|[1-5][0-9]|60)(m|min|mins)|1(h|hour|hours))$",
            "examples": ["30s", "500ms", "1h"],
        })
    }
}

/// The id of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Reservation(pub(crate) String);

impl JsonSchema for Reservation {
    fn schema_name() -> Cow<'static, str> {
        "Reservation".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The id of a reservation: opaque and unguessable.",
            "type": "string",
            "minLength": 1,
            "maxLength": RESERVATION_BYTES_MAX,
        })
    }
}
