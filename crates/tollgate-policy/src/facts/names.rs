//! The attributes a policy uses, numbered, so that a request's values sit in an array.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

/// The number of an attribute within one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttributeId(u16);

impl AttributeId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How an attribute's values are brought into one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttributeKind {
    Text,
    Address,
    ApiKey,
    Host,
    Method,
    Path,
}

impl AttributeKind {
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "ip" => Self::Address,
            "api_key" => Self::ApiKey,
            "host" => Self::Host,
            "method" => Self::Method,
            "path" => Self::Path,
            _ => Self::Text,
        }
    }
}

/// Names to numbers. The names come from the configuration, so looking up a name that a request
/// chose costs the same whatever it is, and a hash that is merely fast will do.
#[derive(Debug, Default)]
pub(crate) struct Names {
    ids: FxHashMap<Box<str>, AttributeId>,
    names: Vec<(Box<str>, AttributeKind)>,
}

impl Names {
    /// The number of a name, a new one if need be; `None` when there are no more.
    pub(crate) fn intern(&mut self, name: &str) -> Option<AttributeId> {
        if let Some(id) = self.get(name) {
            return Some(id);
        }
        let id = AttributeId(u16::try_from(self.names.len()).ok()?);
        let name: Box<str> = fold_header_case(name).into();
        self.names.push((name.clone(), AttributeKind::of(&name)));
        self.ids.insert(name, id);
        Some(id)
    }

    pub(crate) fn get(&self, name: &str) -> Option<AttributeId> {
        self.ids.get(&*fold_header_case(name)).copied()
    }

    /// `None` for a number of another policy.
    pub(crate) fn kind(&self, id: AttributeId) -> Option<AttributeKind> {
        self.names.get(id.index()).map(|(_, kind)| *kind)
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (AttributeId, &str)> {
        (0..).map(AttributeId).zip(self.names.iter().map(|(name, _)| &**name))
    }
}

/// Names of header fields have no case.
fn fold_header_case(name: &str) -> Cow<'_, str> {
    if name.starts_with("header.") && name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}
