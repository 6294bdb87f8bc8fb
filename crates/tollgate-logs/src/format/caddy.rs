//! Caddy: the JSON access log.

use super::{Format, FormatError, FormatSpec, ReadOptions};
use crate::entry::{Field, Meaning};
use crate::json::{HeaderPlace, JsonFormat, JsonSpec};
use crate::time::TimeForm;

pub(super) const SPEC: FormatSpec = FormatSpec {
    name: "caddy",
    build: |options| -> Result<Box<dyn Format>, FormatError> { Ok(build(options)) },
};

static JSON: JsonSpec = JsonSpec {
    required: &["request.method", "request.uri"],
    members: &[
        ("ts", Meaning::EndTime(TimeForm::Any)),
        ("request.client_ip", Meaning::Address),
        ("request.remote_ip", Meaning::Address),
        ("request.remote_addr", Meaning::Address),
        ("request.method", Meaning::Value(Field::Method)),
        ("request.host", Meaning::Value(Field::Host)),
        ("request.uri", Meaning::Target),
        ("user_id", Meaning::Value(Field::User)),
        ("request.headers.User-Agent", Meaning::Value(Field::UserAgent)),
        ("request.headers.Referer", Meaning::Value(Field::Referer)),
        ("request.headers.X-Forwarded-For", Meaning::Value(Field::ForwardedFor)),
        ("status", Meaning::Status),
        ("size", Meaning::Bytes),
        ("duration", Meaning::Duration(1_000_000_000)),
    ],
    headers: HeaderPlace::Object("request.headers"),
};

fn build(options: &ReadOptions) -> Box<dyn Format> {
    Box::new(JsonFormat::new(&JSON, options))
}
