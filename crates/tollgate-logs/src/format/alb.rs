//! AWS Application Load Balancer.

use super::{Format, FormatError, FormatSpec, LineKind, ReadOptions};
use crate::context::Context;
use crate::entry::{BadLine, Entry, Field, Meaning};
use crate::text::{Template, TextFormat};
use crate::time::TimeForm;

pub(super) const SPEC: FormatSpec = FormatSpec { name: "alb", build };

/// The templates. Logs from before 2018 lack the creation time.
const TEMPLATES: [&str; 2] = [
    "$type $end $elb $client $target $request_seconds $target_seconds $response_seconds $status \
     $target_status $received $sent \"$request\" \"$agent\" $cipher $protocol $group \"$trace\" \
     \"$domain\" \"$certificate\" $rule $created \"",
    "$type $end $elb $client $target $request_seconds $target_seconds $response_seconds $status \
     $target_status $received $sent \"$request\" \"$agent\" ",
];

struct Alb(TextFormat);

fn build(options: &ReadOptions) -> Result<Box<dyn Format>, FormatError> {
    let meaning = |name: &str| match name {
        "end" => Meaning::EndTime(TimeForm::Iso),
        "created" => Meaning::Time(TimeForm::Iso),
        "client" => Meaning::Address,
        "request_seconds" => Meaning::Duration(1_000_000_000),
        "target_seconds" | "response_seconds" => Meaning::MoreDuration(1_000_000_000),
        "status" => Meaning::Status,
        "sent" => Meaning::Bytes,
        "request" => Meaning::RequestLine,
        "agent" => Meaning::Value(Field::UserAgent),
        _ => Meaning::Skip,
    };
    let templates: Result<Vec<_>, String> =
        TEMPLATES.iter().map(|template| Template::parse(template, meaning)).collect();
    let context = Context::new(options.zone.clone());
    Ok(Box::new(Alb(TextFormat::new(templates.map_err(FormatError)?, context))))
}

impl Format for Alb {
    fn read<'l>(&mut self, line: &'l str, entry: &mut Entry<'l>) -> Result<LineKind, BadLine> {
        const TYPES: [&str; 6] = ["http ", "https ", "h2 ", "grpcs ", "ws ", "wss "];
        if !TYPES.iter().any(|kind| line.starts_with(kind)) {
            return Err(BadLine(
                "the line does not start with http, https, h2, grpcs or ws".into(),
            ));
        }
        self.0.read(line, entry)
    }
}
