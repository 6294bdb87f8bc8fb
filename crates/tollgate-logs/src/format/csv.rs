//! CSV: the first line names the columns.

use super::{Format, FormatError, FormatSpec, LineKind, ReadOptions};
use crate::columns::{self, Columns};
use crate::context::Context;
use crate::entry::{BadLine, Entry, Field, Meaning};
use crate::time::TimeForm;

pub(super) const SPEC: FormatSpec = FormatSpec { name: "csv", build };

struct Csv {
    options: ReadOptions,
    columns: Columns,
    context: Context,
}

fn build(options: &ReadOptions) -> Result<Box<dyn Format>, FormatError> {
    let context = Context::new(options.zone.clone());
    Ok(Box::new(Csv { options: options.clone(), columns: Columns::default(), context }))
}

impl Csv {
    fn meaning(&self, name: &str) -> Meaning {
        if let Some(place) = self.options.place_of(name) {
            return Meaning::Attribute(place);
        }
        match name.to_ascii_lowercase().replace([' ', '-'], "_").as_str() {
            "time" | "timestamp" | "ts" | "date" | "datetime" | "start_time" => {
                Meaning::Time(TimeForm::Any)
            }
            "ip" | "client_ip" | "remote_addr" | "remote_ip" | "c_ip" => Meaning::Address,
            "method" | "request_method" | "verb" => Meaning::Value(Field::Method),
            "path" | "uri" | "url" | "request_uri" => Meaning::Target,
            "request" => Meaning::RequestLine,
            "query" | "query_string" => Meaning::Value(Field::Query),
            "host" | "authority" => Meaning::Value(Field::Host),
            "user" | "username" | "user_id" | "remote_user" => Meaning::Value(Field::User),
            "user_agent" | "agent" => Meaning::Value(Field::UserAgent),
            "referer" | "referrer" => Meaning::Value(Field::Referer),
            "x_forwarded_for" => Meaning::Value(Field::ForwardedFor),
            "status" | "status_code" => Meaning::Status,
            "bytes" | "size" | "bytes_sent" => Meaning::Bytes,
            "duration" | "response_time" | "request_time" | "latency" => {
                Meaning::Duration(1_000_000_000)
            }
            "duration_ms" | "latency_ms" | "response_time_ms" => Meaning::Duration(1_000_000),
            _ => Meaning::Skip,
        }
    }

    fn read_heading(&mut self, line: &str) -> Result<(), BadLine> {
        let count = |separator: u8| line.bytes().filter(|byte| *byte == separator).count();
        let separator =
            [b',', b';', b'\t'].into_iter().max_by_key(|byte| (count(*byte), *byte == b','));
        let separator = separator.unwrap_or(b',');
        let names = columns::names(line, separator)?;
        let meanings = names.iter().map(|name| self.meaning(name)).collect();
        let columns = Columns { meanings, separator };
        if !columns.has_time() {
            let names = names.join(", ");
            return Err(BadLine::of("the first line has no column `time`", &names));
        }
        self.columns = columns;
        Ok(())
    }
}

impl Format for Csv {
    fn read<'l>(&mut self, line: &'l str, entry: &mut Entry<'l>) -> Result<LineKind, BadLine> {
        if self.columns.meanings.is_empty() {
            return self.read_heading(line).map(|()| LineKind::Heading);
        }
        self.columns.read(line, entry, &mut self.context)?;
        Ok(LineKind::Request)
    }
}
