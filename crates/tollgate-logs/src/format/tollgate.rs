//! Tollgate: the JSON access log of its own gateway. Its other forms are Apache's.

use super::{Format, FormatError, FormatSpec, ReadOptions};
use crate::entry::{Field, Meaning};
use crate::json::{HeaderPlace, JsonFormat, JsonSpec};
use crate::time::TimeForm;

pub(super) const SPEC: FormatSpec = FormatSpec {
    name: "tollgate",
    build: |options| -> Result<Box<dyn Format>, FormatError> { Ok(build(options)) },
};

static JSON: JsonSpec = JsonSpec {
    required: &["client", "method", "target"],
    members: &[
        ("time", Meaning::Time(TimeForm::Iso)),
        ("client", Meaning::Address),
        ("method", Meaning::Value(Field::Method)),
        ("target", Meaning::Target),
        ("host", Meaning::Value(Field::Host)),
        ("referer", Meaning::Value(Field::Referer)),
        ("user_agent", Meaning::Value(Field::UserAgent)),
        ("status", Meaning::Status),
        ("bytes", Meaning::Bytes),
        ("duration_us", Meaning::Duration(1_000)),
    ],
    headers: HeaderPlace::Prefix(""),
};

fn build(options: &ReadOptions) -> Box<dyn Format> {
    Box::new(JsonFormat::new(&JSON, options))
}
