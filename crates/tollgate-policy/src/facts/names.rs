//! The attributes that a policy uses, numbered, so that a request's values fit an array.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

/// The number of an attribute within one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttributeId(u16);

impl AttributeId {
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How the values of an attribute are made canonical.
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

/// Ids by attribute name. All names in the table come from the configuration, so a request cannot
/// cause collisions, and a fast hash is safe.
#[derive(Debug, Default)]
pub(crate) struct Names {
    ids: FxHashMap<Box<str>, AttributeId>,
    names: Vec<(Box<str>, AttributeKind)>,
}

impl Names {
    /// Returns the id of a name, and assigns one to a new name. Returns `None` when no ids are
    /// left.
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

    /// Returns the kind of an attribute; `None` for an id of another policy.
    #[inline]
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

/// Lowers the case of header names, which are case-insensitive.
fn fold_header_case(name: &str) -> Cow<'_, str> {
    if name.starts_with("header.") && name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}
