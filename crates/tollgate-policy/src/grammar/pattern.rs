//! Checks the patterns of `match` for ones that can never match. The matcher compiles them.

use super::{Problem, network};
use crate::diagnostic::{codes, quoted};
use crate::matcher::glob::TOKENS_MAX;
use crate::path::normalise_pattern;

const PATTERN_BYTES_MAX: usize = 4_096;

/// Checks a pattern for the attribute: a network for `ip`, an anchored glob for all others.
pub(crate) fn pattern(attribute: &str, text: &str) -> Result<String, Problem> {
    if attribute == "ip" {
        return network(text).map(|net| net.to_string());
    }
    let bad = |why: &str, help: String| {
        let message = format!("the pattern {} {why}", quoted(text));
        Err(Problem::new(codes::BAD_PATTERN, message, help))
    };
    if text.is_empty() {
        let help = "an empty value counts as absent; write `*` for any value".to_owned();
        return bad("is empty and matches nothing", help);
    }
    if text.len() > PATTERN_BYTES_MAX {
        return bad("is too long", format!("patterns have at most {PATTERN_BYTES_MAX} bytes"));
    }
    if text.contains(['*', '?']) && compared_bytes(attribute, text) > TOKENS_MAX {
        let help = format!(
            "with wildcards at most {TOKENS_MAX} bytes, a path's escapes included: split it into several"
        );
        return bad("is too long", help);
    }
    if text.chars().any(char::is_control) {
        return bad("contains a control character", "remove it".to_owned());
    }
    if text.contains("***") {
        let help = "write `*` within a segment, `**` across segments".to_owned();
        return bad("has three asterisks in a row", help);
    }
    if attribute == "path" {
        return path(text).or_else(|(why, help)| bad(why, help));
    }
    Ok(text.to_owned())
}

/// The length of the pattern in the form that is matched: a path pattern is normalised, so `é`
/// becomes `%C3%A9`.
fn compared_bytes(attribute: &str, text: &str) -> usize {
    if attribute == "path" { normalise_pattern(text).len() } else { text.len() }
}

/// Checks a path pattern. Paths are compared in normal form, so any other pattern never matches.
fn path(text: &str) -> Result<String, (&'static str, String)> {
    if !text.starts_with(['/', '*', '?']) {
        return Err((
            "does not start with `/`",
            format!("a path starts with `/`: write `/{text}`"),
        ));
    }
    if text.contains("//") {
        let help = "duplicate slashes are merged before matching: write one".to_owned();
        return Err(("has two slashes in a row", help));
    }
    if text.split('/').any(|segment| matches!(segment, "." | "..")) {
        let help = "`.` and `..` are resolved before matching: write the path they lead to";
        return Err(("has a dot segment", help.to_owned()));
    }
    if text.contains('#') {
        return Err(("contains `#`", "a request's path has no fragment: remove it".to_owned()));
    }
    Ok(text.to_owned())
}
