//! `metadata`: any value, passed on unchanged.

use crate::yaml::{Node, ScalarKind, Value};

/// A value of a free map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the kinds of JSON")]
pub enum Metadata {
    Null,
    Bool(bool),
    /// The number as written.
    Number(Box<str>),
    Text(Box<str>),
    List(Vec<Metadata>),
    Map(Vec<(Box<str>, Metadata)>),
}

impl Metadata {
    /// Converts a node. The parser's depth limit bounds the recursion.
    pub(super) fn of(node: &Node) -> Self {
        match &node.value {
            Value::Null => Self::Null,
            Value::Scalar { kind: ScalarKind::Bool(value), .. } => Self::Bool(*value),
            Value::Scalar { kind: ScalarKind::Text, text } => Self::Text(text.as_str().into()),
            Value::Scalar { text, .. } => Self::Number(text.as_str().into()),
            Value::List(items) => Self::List(items.iter().map(Self::of).collect()),
            Value::Map(entries) => Self::Map(
                entries
                    .iter()
                    .map(|(key, node)| (key.text.as_str().into(), Self::of(node)))
                    .collect(),
            ),
        }
    }
}
