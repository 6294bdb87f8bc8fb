//! nginx: `combined`, the `main` of its packages, or any `log_format`.

use super::{Format, FormatError, FormatSpec, ReadOptions};
use crate::context::Context;
use crate::entry::{Field, Meaning};
use crate::text::{Template, TextFormat};
use crate::time::TimeForm;

pub(super) const SPEC: FormatSpec = FormatSpec { name: "nginx", build };

const MAIN: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
     \"$http_referer\" \"$http_user_agent\" \"$http_x_forwarded_for\"";
const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status \
     $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";

fn build(options: &ReadOptions) -> Result<Box<dyn Format>, FormatError> {
    let templates: Vec<&str> = match &options.template {
        Some(template) => vec![template.trim()],
        None => vec![MAIN, COMBINED],
    };
    let templates: Result<Vec<_>, String> = templates
        .into_iter()
        .map(|template| Template::parse(template, |name| meaning(name, options)))
        .collect();
    let templates = templates.map_err(|why| FormatError(format!("--log-format: {why}")))?;
    Ok(Box::new(TextFormat::new(templates, Context::new(options.zone.clone()))))
}

/// Returns the meaning of an nginx variable.
pub(super) fn meaning(name: &str, options: &ReadOptions) -> Meaning {
    if let Some(place) = options.mapped().find(|(_, column)| *column == name) {
        return Meaning::Attribute(place.0);
    }
    match name {
        "remote_addr" | "realip_remote_addr" => Meaning::Address,
        "remote_user" => Meaning::Value(Field::User),
        "time_local" => Meaning::EndTime(TimeForm::Clf),
        "time_iso8601" => Meaning::EndTime(TimeForm::Iso),
        "msec" => Meaning::EndTime(TimeForm::Seconds),
        "request" => Meaning::RequestLine,
        "request_method" => Meaning::Value(Field::Method),
        "request_uri" => Meaning::Target,
        "uri" => Meaning::Value(Field::Path),
        "args" | "query_string" => Meaning::Value(Field::Query),
        "host" | "http_host" | "server_name" => Meaning::Value(Field::Host),
        "status" => Meaning::Status,
        "bytes_sent" | "body_bytes_sent" => Meaning::Bytes,
        "request_time" => Meaning::Duration(1_000_000_000),
        "http_user_agent" => Meaning::Value(Field::UserAgent),
        "http_referer" => Meaning::Value(Field::Referer),
        "http_x_forwarded_for" => Meaning::Value(Field::ForwardedFor),
        "http_cookie" => Meaning::Value(Field::Cookie),
        _ => {
            let same = |a: u8, b: u8| a.eq_ignore_ascii_case(&b) || (a == b'-' && b == b'_');
            let is_it = |attribute: &str| {
                let header = match (attribute.split_once('.'), name.split_once('_')) {
                    (Some(("header", header)), Some(("http", rest))) => Some((header, rest)),
                    (Some(("query", header)), Some(("arg", rest))) => Some((header, rest)),
                    (Some(("cookie", header)), Some(("cookie", rest))) => Some((header, rest)),
                    _ => None,
                };
                header.is_some_and(|(a, b)| {
                    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| same(a, b))
                })
            };
            let place = options.attributes.iter().position(|attribute| is_it(attribute));
            place.map_or(Meaning::Skip, Meaning::Attribute)
        }
    }
}
