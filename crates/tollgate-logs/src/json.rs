//! Lines of JSON, and the meaning of their members.

use crate::context::Context;
use crate::entry::{BadLine, Entry, Meaning};
use crate::format::{Format, LineKind, ReadOptions};
use serde_json::Value;
use std::borrow::Cow;

/// A format of JSON objects.
#[derive(Debug)]
pub(crate) struct JsonFormat {
    spec: &'static JsonSpec,
    /// Attributes by the path of their member.
    attributes: Vec<(String, usize)>,
    /// Attributes that are headers, by name.
    headers: Vec<(String, usize)>,
    context: Context,
}

/// The members of a JSON format.
#[derive(Debug)]
pub(crate) struct JsonSpec {
    /// Members that every line has.
    pub(crate) required: &'static [&'static str],
    /// Members and their meanings; of several with one meaning, the first that is present counts. A
    /// dot separates names in a path.
    pub(crate) members: &'static [(&'static str, Meaning)],
    pub(crate) headers: HeaderPlace,
}

/// The place of request headers.
#[derive(Debug)]
pub(crate) enum HeaderPlace {
    /// In the members of this object.
    Object(&'static str),
    /// In members with this prefix.
    Prefix(&'static str),
}

impl JsonFormat {
    pub(crate) fn new(spec: &'static JsonSpec, options: &ReadOptions) -> Self {
        let mut headers = Vec::new();
        for (place, name) in options.attributes.iter().enumerate() {
            if let Some(header) = name.strip_prefix("header.")
                && !options.columns.iter().any(|(attribute, _)| attribute == name)
            {
                headers.push((header.to_owned(), place));
            }
        }
        let attributes = options.mapped().map(|(place, column)| (column.to_owned(), place));
        let context = Context::new(options.zone.clone());
        Self { spec, attributes: attributes.collect(), headers, context }
    }

    fn header<'v>(&self, object: &'v Value, name: &str) -> Option<&'v Value> {
        let (members, prefix) = match self.spec.headers {
            HeaderPlace::Object(path) => (member(object, path)?.as_object()?, ""),
            HeaderPlace::Prefix(prefix) => (object.as_object()?, prefix),
        };
        // Some formats write `_` for `-`.
        let same = |a: u8, b: u8| a.eq_ignore_ascii_case(&b) || (a == b'_' && b == b'-');
        members.iter().find_map(|(key, value)| {
            let key = key.strip_prefix(prefix)?;
            let is_it =
                key.len() == name.len() && key.bytes().zip(name.bytes()).all(|(a, b)| same(a, b));
            is_it.then_some(value)
        })
    }
}

impl Format for JsonFormat {
    fn read<'l>(&mut self, line: &'l str, entry: &mut Entry<'l>) -> Result<LineKind, BadLine> {
        let object: Value = match serde_json::from_str(line) {
            Ok(object @ Value::Object(_)) => object,
            Ok(_) => return Err(BadLine("the line is not a JSON object".into())),
            Err(error) => {
                // The caller adds the number of the line.
                let error = error.to_string().replace(" at line 1 column ", " at column ");
                return Err(BadLine(format!("the line is not JSON: {error}").into()));
            }
        };
        for required in self.spec.required {
            if member(&object, required).is_none() {
                // Servers write other messages to the same file.
                return match object.get("msg").or(object.get("message")) {
                    Some(_) => Ok(LineKind::NotHttp),
                    None => Err(BadLine(format!("the object has no member `{required}`").into())),
                };
            }
        }
        let mut taken: Vec<Meaning> = Vec::new();
        for (path, meaning) in self.spec.members {
            if !taken.contains(meaning)
                && let Some(value) = member(&object, path).and_then(text)
                && !matches!(&*value, "" | "-")
            {
                entry.take(*meaning, value, &mut self.context)?;
                taken.push(*meaning);
            }
        }
        for (path, place) in &self.attributes {
            if let Some(value) = member(&object, path).and_then(text) {
                entry.take(Meaning::Attribute(*place), value, &mut self.context)?;
            }
        }
        for (name, place) in &self.headers {
            if let Some(value) = self.header(&object, name).and_then(text)
                // Caddy writes this in place of credentials.
                && value != "REDACTED"
            {
                entry.attributes.push((*place, value));
            }
        }
        entry.finish()?;
        Ok(if entry.is_http() { LineKind::Request } else { LineKind::NotHttp })
    }
}

/// Returns the member at a path such as `request.headers.User-Agent`.
fn member<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    if let Some(value) = object.get(path) {
        return Some(value);
    }
    let (name, rest) = path.split_once('.')?;
    member(object.get(name)?, rest)
}

/// Returns a text or a number as text; for a list, its first item.
fn text<'l>(value: &Value) -> Option<Cow<'l, str>> {
    match value {
        Value::String(text) => Some(Cow::Owned(text.clone())),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Array(list) => list.first().and_then(text),
        _ => None,
    }
}
