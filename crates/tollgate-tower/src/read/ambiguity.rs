//! Attributes that a request carries more than once, and requests that servers read in more than
//! one way.
//!
//! Servers differ in which of two values they read: the first, the last, or both joined. So a
//! header, cookie or parameter in a key, a tier or a cost must have one value; otherwise the
//! request is ambiguous. An attribute that only `match` mentions may have several: a limit applies
//! if one of them matches.

use super::lookalike::is_unclear_at_ends;
use super::{Head, cookie, query, set_bytes};
use http::HeaderName;
use http::header::COOKIE;
use std::borrow::Cow;
use std::fmt;
use tollgate_policy::facts::{AttributeId, Facts, InvalidAttribute};
use tollgate_policy::path::AmbiguousPath;

/// Why a service could read a request in another way than it is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ambiguity {
    /// The path.
    Path(AmbiguousPath),
    /// A header that identifies, with two values.
    Header(HeaderName),
    /// A cookie that identifies, with two values.
    Cookie(Box<str>),
    /// A query parameter that identifies, with two values.
    Query(Box<str>),
}

impl Ambiguity {
    /// The part of the request, in one word: `path`, `header`, `cookie` or `query`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Path(_) => "path",
            Self::Header(_) => "header",
            Self::Cookie(_) => "cookie",
            Self::Query(_) => "query",
        }
    }
}

/// No character in it needs an escape in JSON.
impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |name: &str| -> String {
            let is_shown = |c: &char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
            name.chars().filter(is_shown).collect()
        };
        match self {
            Self::Path(AmbiguousPath::Backslash) => {
                f.write_str("servers read this path in more than one way: it has a backslash")
            }
            Self::Path(why) => why.fmt(f),
            Self::Header(name) => write!(f, "the header `{name}` has two values"),
            Self::Cookie(name) => write!(f, "the cookie `{}` has two values", shown(name)),
            Self::Query(name) => write!(f, "the query parameter `{}` has two values", shown(name)),
        }
    }
}

impl std::error::Error for Ambiguity {}

impl From<AmbiguousPath> for Ambiguity {
    fn from(why: AmbiguousPath) -> Self {
        Self::Path(why)
    }
}

/// Whether an attribute may have several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Multiplicity {
    /// In a key, a tier, a class or a cost.
    One,
    /// Only in `match`.
    Many,
}

/// Sets an attribute to a path; without an attribute, only checks the path.
#[inline]
pub(super) fn set_path<'a>(
    facts: &mut Facts<'a>,
    id: Option<AttributeId>,
    path: &'a str,
) -> Result<(), Ambiguity> {
    let set = match id {
        Some(id) => facts.set_id(id, path),
        None => facts.check_path(path),
    };
    match set {
        Err(InvalidAttribute::Path(why)) => Err(Ambiguity::Path(why)),
        _ => Ok(()),
    }
}

/// Whether all lines of a header have the same value.
pub(super) fn is_one(head: &impl Head, name: &HeaderName) -> bool {
    let mut lines = head.header_values(name).map(<[u8]>::trim_ascii);
    let first = lines.next();
    lines.all(|line| Some(line) == first)
}

/// Sets an attribute to the lines of a header: equal ones count once, different ones are joined
/// with `, `.
pub(super) fn set_header<'a>(
    facts: &mut Facts<'a>,
    (id, multiplicity): (AttributeId, Multiplicity),
    head: &'a impl Head,
    name: &HeaderName,
) -> Result<(), Ambiguity> {
    let mut lines = head.header_values(name);
    let Some(first) = lines.next() else { return Ok(()) };
    if lines.next().is_none() || is_one(head, name) {
        let value = first.trim_ascii();
        if multiplicity == Multiplicity::One && is_unclear_at_ends(value) {
            return Err(Ambiguity::Header(name.clone()));
        }
        set_bytes(facts, id, value);
        return Ok(());
    }
    if multiplicity == Multiplicity::One {
        return Err(Ambiguity::Header(name.clone()));
    }
    let lines = || head.header_values(name).map(|line| String::from_utf8_lossy(line.trim_ascii()));
    let _ = facts.write_id(id, |out| {
        for (index, line) in lines().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            out.push_str(&line);
        }
    });
    lines().for_each(|line| facts.add_match_value(id, &line));
    Ok(())
}

/// Sets an attribute to the first cookie of a name.
pub(super) fn set_cookie<'a>(
    facts: &mut Facts<'a>,
    (id, multiplicity): (AttributeId, Multiplicity),
    head: &'a impl Head,
    name: &str,
) -> Result<(), Ambiguity> {
    let mut values = cookie::all(head.header_values(&COOKIE), name);
    let lookalikes = cookie::lookalikes(head.header_values(&COOKIE), name);
    let first = values.next();
    let text = first.map(cookie::CookieValue::text);
    let mut others = values.chain(lookalikes);
    if multiplicity == Multiplicity::One {
        let is_unclear = first.is_some_and(cookie::CookieValue::is_unclear);
        if is_unclear || others.any(|value| Some(value.text()) != text) {
            return Err(Ambiguity::Cookie(name.into()));
        }
    } else {
        others.for_each(|value| {
            facts.add_match_value(id, &String::from_utf8_lossy(&value.text()));
        });
    }
    match text {
        None => {}
        Some(Cow::Borrowed(value)) => set_bytes(facts, id, value),
        Some(Cow::Owned(value)) => {
            let _ = facts.write_id(id, |out| out.push_str(&String::from_utf8_lossy(&value)));
        }
    }
    Ok(())
}

/// Sets an attribute to the first parameter of a name.
pub(super) fn set_query<'a>(
    facts: &mut Facts<'a>,
    (id, multiplicity): (AttributeId, Multiplicity),
    query: Option<&'a str>,
    name: &str,
) -> Result<(), Ambiguity> {
    let Some(query) = query else { return Ok(()) };
    let (mut values, mut lookalikes) = (query::all(query, name), query::lookalikes(query, name));
    let first = values.next();
    let is_other = |value: &str| match first {
        Some(first) => value != first && query::trimmed(value) != query::trimmed(first),
        None => true,
    };
    if multiplicity == Multiplicity::One {
        if values.any(is_other) || lookalikes.any(is_other) {
            return Err(Ambiguity::Query(name.into()));
        }
    } else {
        let others = values.chain(lookalikes).filter(|value| is_other(value));
        others.for_each(|value| facts.add_match_value(id, &query::value(value)));
    }
    let Some(first) = first else { return Ok(()) };
    let _ = match query::trimmed(first) {
        Cow::Borrowed(value) => facts.set_id(id, value),
        Cow::Owned(value) => facts.write_id(id, |out| out.push_str(&value)),
    };
    Ok(())
}
