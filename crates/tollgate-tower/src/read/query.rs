//! Finds one parameter in a query.

use super::lookalike::{CaseSensitivity, is_lookalike, is_space};
use std::borrow::Cow;
use std::ops::Range;
use tollgate_policy::hex::{Plus, unescape};

/// The raw values of all parameters of that name, in their order; one without `=` has an empty
/// value.
pub(super) fn all<'a>(query: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    pairs(query, |byte| byte == '&')
        .filter(move |(key, _)| decoded(key) == name)
        .map(|(_, value)| value)
}

/// The raw values that only some servers read under this name. They also split a query at `;`, or
/// read `name[]`, `Name` or `na.me` as `name` or `na_me`.
pub(super) fn lookalikes<'a>(query: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let has_semicolon = query.contains(';');
    let by_semicolon = pairs(query, |byte| matches!(byte, '&' | ';'))
        .filter(move |(key, _)| has_semicolon && decoded(key) == name);
    let by_alias = pairs(query, |byte| matches!(byte, '&' | ';'))
        .filter(move |(key, _)| is_alias(&decoded(key), name));
    by_semicolon.chain(by_alias).map(|(_, value)| value)
}

/// Replaces secrets in a request target or URL by `***`: user and password, the fragment, and the
/// values of these parameters. Parameters that only some servers read under these names are
/// replaced too.
pub(super) fn redacted<'t>(target: &'t str, names: &[&str]) -> Cow<'t, str> {
    let userinfo = userinfo(target);
    if userinfo.is_none() && !target.contains('#') {
        return redacted_query(target, names);
    }
    let userinfo = userinfo.unwrap_or(0..0);
    let (start, end) = (&target[..userinfo.start], &target[userinfo.end..]);
    let (end, fragment) = end.split_once('#').map_or((end, ""), |(end, _)| (end, "#***"));
    let hidden = if userinfo.is_empty() { "" } else { "***" };
    format!("{start}{hidden}{}{fragment}", redacted_query(end, names)).into()
}

/// The position of the user and password in a URL.
fn userinfo(target: &str) -> Option<Range<usize>> {
    let start = target.find("://")? + 3;
    let authority = target[start..].split(['/', '?', '#']).next()?;
    Some(start..start + authority.rfind('@')?)
}

fn redacted_query<'t>(target: &'t str, names: &[&str]) -> Cow<'t, str> {
    let Some((path, query)) = target.split_once('?').filter(|_| !names.is_empty()) else {
        return Cow::Borrowed(target);
    };
    let is_secret = |key: &str| {
        let key = decoded(key);
        names.iter().any(|name| key == *name || is_alias(&key, name))
    };
    let mut text = path.to_owned();
    for (index, pair) in query.split('&').enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        // The value of a secret parameter may hold `;`, so the whole rest is hidden.
        let starts = std::iter::once(0).chain(pair.match_indices(';').map(|(at, _)| at + 1));
        let mut ends = starts.filter_map(|start| {
            let (key, _) = pair[start..].split_once('=')?;
            is_secret(key).then_some(start + key.len() + 1)
        });
        match ends.next() {
            Some(end) => text.extend([&pair[..end], "***"]),
            None => text.push_str(pair),
        }
    }
    Cow::Owned(text)
}

fn pairs(query: &str, separates: fn(char) -> bool) -> impl Iterator<Item = (&str, &str)> {
    query.split(separates).map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn decoded(text: &str) -> Cow<'_, str> {
    if is_plain(text) { Cow::Borrowed(text) } else { Cow::Owned(value(text)) }
}

/// Whether some servers read a different `key` as `name`. ASP.NET ignores case, and PHP's built-in
/// server ignores a second `?`.
fn is_alias(key: &str, name: &str) -> bool {
    let rest = key.trim_start_matches('?');
    let is_like = is_lookalike(rest.as_bytes(), name.as_bytes(), CaseSensitivity::Insensitive);
    key != name && (rest == name || is_like)
}

/// Whether the text is its own decoded form.
fn is_plain(text: &str) -> bool {
    !text.bytes().any(|byte| matches!(byte, b'%' | b'+'))
}

/// The decoded text: `+` is a space, `%41` is `A`, a broken escape stays.
pub(super) fn value(text: &str) -> String {
    String::from_utf8_lossy(&unescape(text.as_bytes(), Plus::Space)).into_owned()
}

/// The decoded text without white space and control characters at its ends: Tornado trims them.
pub(super) fn trimmed(text: &str) -> Cow<'_, str> {
    match decoded(text) {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_matches(is_space)),
        Cow::Owned(text) => Cow::Owned(text.trim_matches(is_space).to_owned()),
    }
}
