//! YAML as a tree in which every node has its position.
//!
//! The tree separates the text from the raw types, so that one invalid field does not hide the
//! others: serde stops at the first error, a walk over the tree does not.

mod failure;

use crate::diagnostic::{Diagnostic, Position, Severity, codes};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};
use std::fmt;

/// The largest file. Even a file generated for thousands of customers is smaller.
pub(crate) const BYTES_MAX: usize = 16 << 20;
pub(crate) const DEPTH_MAX: usize = 32;

/// One value with its position; for an alias, the position of its definition.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) value: Value,
}

#[derive(Clone)]
pub(crate) enum Value {
    Null,
    Scalar { kind: ScalarKind, text: String },
    List(Vec<Node>),
    Map(Vec<(YamlKey, Node)>),
}

/// The type of a scalar by its text alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarKind {
    Text,
    Bool(bool),
    Unsigned(u64),
    Number,
}

#[derive(Clone)]
pub(crate) struct YamlKey {
    pub(crate) at: Position,
    pub(crate) text: String,
}

impl Node {
    /// Returns the value of a field of a map.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|(key, _)| key.text == name).map(|(_, node)| node)
    }

    /// The text of a scalar, as written.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// Parses one document. An empty file counts as an empty map.
pub(crate) fn parse(bytes: &[u8]) -> Result<Node, Diagnostic> {
    parse_deep(bytes, DEPTH_MAX)
}

/// [`parse`] for a file with up to `depth_max` levels. Every walk over the tree recurses as deep.
pub(crate) fn parse_deep(bytes: &[u8], depth_max: usize) -> Result<Node, Diagnostic> {
    let fail = |code, at, message: String, help: &str| {
        Err(Diagnostic::new(code, Severity::Error, at, message, help))
    };
    if bytes.len() > BYTES_MAX {
        let message = format!("the file has {} bytes", bytes.len());
        return fail(codes::TOO_BIG, Position::START, message, "a file has at most 16 MiB");
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = position_of(&bytes[..error.valid_up_to()]);
            let message = "this byte is not part of UTF-8 text".to_owned();
            return fail(codes::NOT_UTF8, at, message, "save the file as UTF-8");
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match serde_saphyr::from_str_with_options::<Option<ParsedNode>>(text, options(depth_max)) {
        Ok(Some(parsed)) => Ok(parsed.into_node(text)),
        Ok(None) => Ok(Node { at: Position::START, value: Value::Null }),
        Err(error) => Err(failure::diagnostic(&error, depth_max)),
    }
}

fn options(depth_max: usize) -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: depth_max,
            flow_nesting_limit: depth_max,
            max_events: 8_000_000,
            max_nodes: 4_000_000,
            max_anchors: 10_000,
            max_aliases: 10_000,
            max_documents: 2,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
        },
        // `off` is a mode, and `yes` is not a number of slots.
        strict_booleans: true,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    }
}

fn position_of(before: &[u8]) -> Position {
    let text = String::from_utf8_lossy(before);
    let line = text.matches('\n').count() + 1;
    let column = text.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Position { line: saturate(line as u64), column: saturate(column as u64) }
}

fn saturate(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl From<Location> for Position {
    fn from(location: Location) -> Self {
        let at_least_one = |value| saturate(value).max(1);
        Self { line: at_least_one(location.line()), column: at_least_one(location.column()) }
    }
}

/// A node as serde returns it; the source text of its scalars is filled in afterwards.
struct ParsedNode(Spanned<ParsedValue>);

enum ParsedValue {
    Null,
    Scalar(ScalarKind, Option<String>),
    List(Vec<ParsedNode>),
    Map(Vec<(Spanned<String>, ParsedNode)>),
}

impl ParsedNode {
    /// Converts to a [`Node`]. The parser's depth limit bounds the recursion.
    fn into_node(self, source: &str) -> Node {
        let location = self.0.defined;
        let value = match self.0.value {
            ParsedValue::Null => Value::Null,
            ParsedValue::Scalar(kind, text) => {
                let text = text.unwrap_or_else(|| written(source, location).to_owned());
                Value::Scalar { kind, text }
            }
            ParsedValue::List(items) => {
                Value::List(items.into_iter().map(|item| item.into_node(source)).collect())
            }
            ParsedValue::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| {
                        let key = YamlKey { at: key.defined.into(), text: key.value };
                        (key, value.into_node(source))
                    })
                    .collect(),
            ),
        };
        Node { at: location.into(), value }
    }
}

/// Returns a plain scalar as written: as numbers, `1.50` and `007` would lose characters.
fn written(source: &str, location: Location) -> &str {
    let span = location.span();
    let range = span.byte_offset().zip(span.byte_len()).and_then(|(start, length)| {
        let start = usize::try_from(start).ok()?;
        source.get(start..start.checked_add(usize::try_from(length).ok()?)?)
    });
    range.unwrap_or_default().trim()
}

impl<'de> Deserialize<'de> for ParsedNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::<ParsedValue>::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for ParsedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = ParsedValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<ParsedValue, E> {
        Ok(ParsedValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<ParsedValue, E> {
        Ok(ParsedValue::Scalar(ScalarKind::Bool(value), None))
    }

    fn visit_u64<E>(self, value: u64) -> Result<ParsedValue, E> {
        Ok(ParsedValue::Scalar(ScalarKind::Unsigned(value), None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<ParsedValue, E> {
        Ok(ParsedValue::Scalar(ScalarKind::Number, None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<ParsedValue, E> {
        Ok(ParsedValue::Scalar(ScalarKind::Number, None))
    }

    fn visit_str<E>(self, text: &str) -> Result<ParsedValue, E> {
        Ok(ParsedValue::Scalar(ScalarKind::Text, Some(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ParsedValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(ParsedValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<ParsedValue, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(ParsedValue::Map(map))
    }
}

#[cfg(test)]
mod tests;
