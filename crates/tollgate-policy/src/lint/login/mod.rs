//! Lints about login paths, where passwords are guessed: TG103 to TG106.
//!
//! Only paths that the file names count, in `match` or `not`: the file does not show whether an
//! application has a `/login` that no pattern mentions. A path is login-like if one of its
//! segments, up to its first dot or wildcard, is one of a few words. The words are `login`,
//! `signin`, `token`, `log-in`, `sign-in`, `log_in`, `sign_in`, and all that begin with `password`.
//! Case does not matter.

pub(super) mod disclosed;
pub(super) mod fails_open;
pub(super) mod mixed;
pub(super) mod unlimited;

use super::analysis::cover::Pattern;
use super::analysis::view::{LintView, LintedLimit};
use crate::diagnostic::Position;
use crate::raw::{Conditions, Limit};
use std::collections::HashMap;

const WORDS: [&str; 7] = ["login", "signin", "token", "log-in", "sign-in", "log_in", "sign_in"];

/// A login-like path that the file names, and the limits that guard it.
struct LoginTarget<'v, 'a> {
    /// The path as written.
    path: &'a str,
    /// The position of the path: in the match of an enforced limit if possible, else its first use.
    at: Position,
    /// The limits that can refuse POST requests for the path.
    guards: Vec<&'v LintedLimit<'a>>,
}

/// Returns every login-like path of the file once, in file order.
fn targets<'v, 'a>(view: &'v LintView<'a>) -> Vec<LoginTarget<'v, 'a>> {
    let mut targets: Vec<LoginTarget<'v, 'a>> = Vec::new();
    let mut known: HashMap<&str, (usize, bool)> = HashMap::new();
    let mut left = view.guards_compared_max();
    for item in &view.limits {
        let entry: &'a Limit = &item.entry.value;
        let named = matched_paths(entry).map(|mention| (mention, item.refuses()));
        let left_out = excluded_paths(entry).map(|mention| (mention, false));
        for ((path, at), is_enforced) in named.chain(left_out) {
            if !is_login_like(path) {
                continue;
            }
            if let Some((index, was_enforced)) = known.get_mut(path) {
                if is_enforced && !*was_enforced {
                    *was_enforced = true;
                    targets[*index].at = at;
                }
            } else if let Some(guards) = view.guards(&Pattern::new("path", path), &mut left) {
                known.insert(path, (targets.len(), is_enforced));
                targets.push(LoginTarget { path, at, guards });
            }
        }
    }
    targets
}

/// The patterns for `path` under `match`, as written.
fn matched_paths(entry: &Limit) -> impl Iterator<Item = (&str, Position)> {
    entry.r#match.iter().flat_map(|spec| paths(&spec.conditions))
}

/// The patterns for `path` under `not`.
fn excluded_paths(entry: &Limit) -> impl Iterator<Item = (&str, Position)> {
    let not = entry.r#match.iter().flat_map(|spec| &spec.not);
    not.flat_map(|not| &not.0).flat_map(|conditions| paths(conditions))
}

fn paths(conditions: &Conditions) -> impl Iterator<Item = (&str, Position)> {
    let of_path = conditions.0.iter().filter(|(attribute, _)| attribute.value == "path");
    of_path.flat_map(|(_, patterns)| &patterns.0).map(|text| (&*text.value, text.at))
}

fn is_login_like(path: &str) -> bool {
    path.split('/').any(|segment| {
        let end = segment.find(['.', '*', '?']).unwrap_or(segment.len());
        let word = segment[..end].to_ascii_lowercase();
        WORDS.contains(&word.as_str()) || word.starts_with("password")
    })
}
