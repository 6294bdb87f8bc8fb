//! Reads the values of a ratelimit file, with the type errors of envoyproxy/ratelimit.

use crate::diagnostic::{Position, Report, codes};
use crate::yaml::{Node, ScalarKind, Value};

pub(super) fn report_error(
    report: &mut Report,
    at: Position,
    message: impl Into<String>,
    help: &str,
) {
    report.error(codes::RATELIMIT_FILE, at, message, help);
}

/// The start of envoyproxy/ratelimit's message for a value of the wrong type.
pub(super) const UNMARSHAL: &str = "error loading config file: yaml: unmarshal errors:";

/// The message of Go's YAML reader for a field that does not fit the Go type `into`.
pub(super) fn mismatch(node: &Node, name: &str, into: &str) -> String {
    let found = node.field(name).map(describe).unwrap_or_default();
    format!("{UNMARSHAL} `{name}`: cannot unmarshal {found} into {into}")
}

/// The tag of a value and, for a scalar, its text; long text is cut as Go's YAML reader cuts it.
pub(super) fn describe(node: &Node) -> String {
    let (tag, text) = match &node.value {
        Value::List(_) => return "!!seq".into(),
        Value::Map(_) => return "!!map".into(),
        Value::Null => ("!!null", "null"),
        Value::Scalar { kind: ScalarKind::Text, text } => ("!!str", text.as_str()),
        Value::Scalar { kind: ScalarKind::Bool(_), text } => ("!!bool", text.as_str()),
        Value::Scalar { text, .. } if text.contains('.') => ("!!float", text.as_str()),
        Value::Scalar { text, .. } => ("!!int", text.as_str()),
    };
    let is_long = text.chars().count() > 10;
    let shown: String = text.chars().take(if is_long { 7 } else { 10 }).collect();
    format!("{tag} `{shown}{}`", if is_long { "..." } else { "" })
}

/// Reads a text. Numbers and booleans are taken as written.
pub(super) fn text(parent: &Node, name: &str, report: &mut Report) -> String {
    match parent.field(name).map(|field| (&field.value, field.at)) {
        None | Some((Value::Null, _)) => String::new(),
        Some((Value::Scalar { text, .. }, _)) => text.clone(),
        Some((Value::List(_) | Value::Map(_), at)) => {
            report_error(report, at, mismatch(parent, name, "string"), "write a text");
            String::new()
        }
    }
}

pub(super) fn boolean(parent: &Node, name: &str, report: &mut Report) -> bool {
    match parent.field(name).map(|field| (&field.value, field.at)) {
        None | Some((Value::Null, _)) => false,
        Some((Value::Scalar { kind: ScalarKind::Bool(value), .. }, _)) => *value,
        // envoyproxy/ratelimit reads YAML 1.1, which has more words for booleans.
        Some((Value::Scalar { text, .. }, _)) if is_word(text, ["yes", "on", "y"]) => true,
        Some((Value::Scalar { text, .. }, _)) if is_word(text, ["no", "off", "n"]) => false,
        Some((_, at)) => {
            report_error(report, at, mismatch(parent, name, "bool"), "write `true` or `false`");
            false
        }
    }
}

fn is_word(text: &str, words: [&str; 3]) -> bool {
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Reads a whole number of 32 bits; 0 if the field is absent.
pub(super) fn count(parent: &Node, name: &str, report: &mut Report) -> u32 {
    let Some(node) = parent.field(name) else { return 0 };
    let given = match &node.value {
        Value::Null => Some(0),
        Value::Scalar { kind: ScalarKind::Unsigned(value), .. } => u32::try_from(*value).ok(),
        _ => None,
    };
    given.unwrap_or_else(|| {
        let help = "write a whole number up to 4294967295, digits without quotes";
        report_error(report, node.at, mismatch(parent, name, "uint32"), help);
        0
    })
}
