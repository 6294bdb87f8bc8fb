//! Apache: `common` and `combined`, each also with a virtual host in front.

use super::{Format, FormatError, FormatSpec, ReadOptions, nginx};
use crate::context::Context;
use crate::entry::Meaning;
use crate::text::{Template, TextFormat};
use crate::time::TimeForm;

pub(super) const SPEC: FormatSpec = FormatSpec { name: "apache", build };

/// Templates in the syntax of nginx. Apache logs the start of the request.
const TEMPLATES: [&str; 4] = [
    "$remote_addr $ident $remote_user [$t] \"$request\" $status $bytes_sent \"$http_referer\" \
     \"$http_user_agent\"",
    "$remote_addr $ident $remote_user [$t] \"$request\" $status $bytes_sent",
    "$host:$port $remote_addr $ident $remote_user [$t] \"$request\" $status $bytes_sent \
     \"$http_referer\" \"$http_user_agent\"",
    "$host:$port $remote_addr $ident $remote_user [$t] \"$request\" $status $bytes_sent",
];

fn build(options: &ReadOptions) -> Result<Box<dyn Format>, FormatError> {
    let meaning = |name: &str| match name {
        "t" => Meaning::Time(TimeForm::Clf),
        name => nginx::meaning(name, options),
    };
    let templates: Result<Vec<_>, String> =
        TEMPLATES.iter().map(|template| Template::parse(template, meaning)).collect();
    let context = Context::new(options.zone.clone());
    Ok(Box::new(TextFormat::new(templates.map_err(FormatError)?, context)))
}
