//! Envoy: the default text format, the text format of Istio, and JSON with the names of both.

use super::{Format, FormatError, FormatSpec, LineKind, ReadOptions};
use crate::context::Context;
use crate::entry::{BadLine, Entry, Field, Meaning};
use crate::json::{HeaderPlace, JsonFormat, JsonSpec};
use crate::text::{Template, TextFormat};
use crate::time::TimeForm;

pub(super) const SPEC: FormatSpec = FormatSpec { name: "envoy", build };

/// Istio's text format has a reason and addresses, which the default lacks.
const TEMPLATES: [&str; 2] = [
    "[$start] \"$method $path $protocol\" $status $flags $details $termination \"$failure\" \
     $received $sent $duration $upstream_time \"$forwarded\" \"$agent\" \"$id\" \"$authority\" \
     \"$upstream\" $cluster $upstream_local $local $remote $",
    "[$start] \"$method $path $protocol\" $status $flags $received $sent $duration \
     $upstream_time \"$forwarded\" \"$agent\" \"$id\" \"$authority\" \"$upstream\"",
];

static JSON: JsonSpec = JsonSpec {
    required: &["start_time"],
    members: &[
        ("start_time", Meaning::Time(TimeForm::Any)),
        ("downstream_remote_address", Meaning::Address),
        ("downstream_remote_address_without_port", Meaning::Address),
        ("method", Meaning::Value(Field::Method)),
        (":method", Meaning::Value(Field::Method)),
        ("path", Meaning::Target),
        ("x-envoy-origin-path", Meaning::Target),
        (":path", Meaning::Target),
        ("authority", Meaning::Value(Field::Host)),
        (":authority", Meaning::Value(Field::Host)),
        ("user_agent", Meaning::Value(Field::UserAgent)),
        ("user-agent", Meaning::Value(Field::UserAgent)),
        ("referer", Meaning::Value(Field::Referer)),
        ("x_forwarded_for", Meaning::Value(Field::ForwardedFor)),
        ("x-forwarded-for", Meaning::Value(Field::ForwardedFor)),
        ("response_code", Meaning::Status),
        ("bytes_sent", Meaning::Bytes),
        ("duration", Meaning::Duration(1_000_000)),
    ],
    headers: HeaderPlace::Prefix(""),
};

/// Reads text or JSON, distinguished by the first character.
struct Envoy {
    text: TextFormat,
    json: JsonFormat,
}

fn build(options: &ReadOptions) -> Result<Box<dyn Format>, FormatError> {
    let meaning = |name: &str| match name {
        "start" => Meaning::Time(TimeForm::Iso),
        "method" => Meaning::Value(Field::Method),
        "path" => Meaning::Target,
        "status" => Meaning::Status,
        "sent" => Meaning::Bytes,
        "duration" => Meaning::Duration(1_000_000),
        "forwarded" => Meaning::Value(Field::ForwardedFor),
        "agent" => Meaning::Value(Field::UserAgent),
        "authority" => Meaning::Value(Field::Host),
        "remote" => Meaning::Address,
        _ => Meaning::Skip,
    };
    let templates: Result<Vec<_>, String> = TEMPLATES
        .iter()
        .map(|template| Template::parse(template.trim_end_matches('$'), meaning))
        .collect();
    let text = TextFormat::new(templates.map_err(FormatError)?, Context::new(options.zone.clone()));
    Ok(Box::new(Envoy { text, json: JsonFormat::new(&JSON, options) }))
}

impl Format for Envoy {
    fn read<'l>(&mut self, line: &'l str, entry: &mut Entry<'l>) -> Result<LineKind, BadLine> {
        let kind = if line.starts_with('{') {
            self.json.read(line, entry)?
        } else {
            self.text.read(line, entry)?
        };
        // The default text format has the client's address only in X-Forwarded-For.
        if entry.value(Field::Ip).is_empty() {
            let first = entry.value(Field::ForwardedFor).split(',').next().unwrap_or_default();
            let first = first.trim().to_owned();
            entry.set(Field::Ip, first.into());
        }
        Ok(kind)
    }
}
