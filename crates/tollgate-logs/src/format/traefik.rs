//! Traefik: the common log format with additional fields, and JSON.

use super::{Format, FormatError, FormatSpec, LineKind, ReadOptions, nginx};
use crate::context::Context;
use crate::entry::{BadLine, Entry, Field, Meaning};
use crate::json::{HeaderPlace, JsonFormat, JsonSpec};
use crate::text::{Template, TextFormat};
use crate::time::TimeForm;

pub(super) const SPEC: FormatSpec = FormatSpec { name: "traefik", build };

const TEMPLATE: &str = "$remote_addr - $remote_user [$t] \"$request\" $status $bytes_sent \
     \"$http_referer\" \"$http_user_agent\" $count \"$router\" \"$server\" ${duration}ms";

static JSON: JsonSpec = JsonSpec {
    required: &["RequestMethod", "RequestPath"],
    members: &[
        ("StartUTC", Meaning::Time(TimeForm::Iso)),
        ("StartLocal", Meaning::Time(TimeForm::Iso)),
        ("time", Meaning::Time(TimeForm::Iso)),
        ("ClientHost", Meaning::Address),
        ("ClientAddr", Meaning::Address),
        ("ClientUsername", Meaning::Value(Field::User)),
        ("RequestMethod", Meaning::Value(Field::Method)),
        ("RequestHost", Meaning::Value(Field::Host)),
        ("RequestAddr", Meaning::Value(Field::Host)),
        ("RequestPath", Meaning::Target),
        ("request_User-Agent", Meaning::Value(Field::UserAgent)),
        ("request_Referer", Meaning::Value(Field::Referer)),
        ("request_X-Forwarded-For", Meaning::Value(Field::ForwardedFor)),
        ("DownstreamStatus", Meaning::Status),
        ("DownstreamContentSize", Meaning::Bytes),
        ("Duration", Meaning::Duration(1)),
    ],
    headers: HeaderPlace::Prefix("request_"),
};

/// Reads text or JSON, distinguished by the first character.
struct Traefik {
    text: TextFormat,
    json: JsonFormat,
}

fn build(options: &ReadOptions) -> Result<Box<dyn Format>, FormatError> {
    let meaning = |name: &str| match name {
        "t" => Meaning::Time(TimeForm::Clf),
        "duration" => Meaning::Duration(1_000_000),
        name => nginx::meaning(name, options),
    };
    let template = Template::parse(TEMPLATE, meaning).map_err(FormatError)?;
    let text = TextFormat::new(vec![template], Context::new(options.zone.clone()));
    Ok(Box::new(Traefik { text, json: JsonFormat::new(&JSON, options) }))
}

impl Format for Traefik {
    fn read<'l>(&mut self, line: &'l str, entry: &mut Entry<'l>) -> Result<LineKind, BadLine> {
        if line.starts_with('{') {
            self.json.read(line, entry)
        } else {
            self.text.read(line, entry)
        }
    }
}
