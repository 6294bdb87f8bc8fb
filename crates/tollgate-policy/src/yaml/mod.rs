//! YAML as a tree in which every node has its position.
//!
//! The tree separates the text from the raw types, so that one invalid field does not hide the
//! others: serde stops at the first error, a walk over the tree does not. So the parser's events
//! are composed to it here, without serde.

mod compose;

use crate::diagnostic::{Diagnostic, Position, Severity, codes};
use compose::Composer;

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
    Composer::new(text, depth_max).document()
}

fn position_of(before: &[u8]) -> Position {
    let text = String::from_utf8_lossy(before);
    let line = text.matches('\n').count() + 1;
    let column = text.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Position { line: saturate(line), column: saturate(column) }
}

fn saturate(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
