//! Converts errors of the YAML parser to diagnostics.

use crate::diagnostic::{Diagnostic, Position, Severity, codes, quoted};
use crate::schema;
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

/// Returns one diagnostic: after the first error, a parser cannot tell what was meant.
///
/// The parser does not know which map it reads. A key of a tier map may be an API key, so only
/// names of fields are quoted.
pub(super) fn diagnostic(error: &Error, depth_max: usize) -> Diagnostic {
    let error = error.without_snippet();
    let at = error.location().map_or(Position::START, Position::from);
    let too_deep = || {
        let help = format!("a file has at most {depth_max} levels");
        let message = "lists and maps are nested too deeply";
        Diagnostic::new(codes::TOO_BIG, Severity::Error, at, message, help)
    };
    let (code, message, help) = match innermost(error) {
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => return too_deep(),
        Error::DuplicateMappingKey { key, .. } => {
            let field = key.as_deref().filter(|key| schema::has_field(key));
            let key = field.map(quoted).unwrap_or_else(|| "a name".to_owned());
            let message = format!("{key} is given twice in one map");
            (codes::DUPLICATE_FIELD, message, "keep one of the two")
        }
        Error::MultipleDocuments { .. } => {
            let message = "a second document starts here".to_owned();
            (codes::SEVERAL_DOCUMENTS, message, "keep one document; remove the `---` line")
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => {
            let message = "the file has too many aliases, anchors or values".to_owned();
            (codes::TOO_BIG, message, "write repeated values out, or generate fewer of them")
        }
        other => {
            let message = first_line(other);
            if message.contains("recursion") || message.contains("nesting") {
                return too_deep();
            }
            let help = "check the indentation, quotes and brackets here and just above";
            (codes::SYNTAX, message, help)
        }
    };
    Diagnostic::new(code, Severity::Error, at, message, help)
}

fn innermost(mut error: &Error) -> &Error {
    while let Error::AliasError { error: inner, .. } = error {
        error = inner;
    }
    error
}

/// The parser's message without the position, which precedes it already.
fn first_line(error: &Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let line = line.rfind(" at line ").map_or(line, |end| &line[..end]);
    match line.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) {
        Some((place, message)) if place.starts_with(|c: char| c.is_ascii_digit()) => {
            message.to_owned()
        }
        _ => line.to_owned(),
    }
}
