//! Secrets of a file, which nothing repeats.

use std::fmt;

/// A secret, or where it is found. Debug output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(SecretSource);

/// Where a [`Secret`] is.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In the file itself.
    Literal(Box<str>),
    /// In this environment variable.
    Env(Box<str>),
}

impl Secret {
    pub(crate) fn literal(text: impl Into<Box<str>>) -> Self {
        Self(SecretSource::Literal(text.into()))
    }

    pub(crate) fn env(name: impl Into<Box<str>>) -> Self {
        Self(SecretSource::Env(name.into()))
    }

    /// The secret, or the variable it is in; named so that every use stands out.
    pub const fn expose(&self) -> &SecretSource {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            SecretSource::Literal(_) => f.write_str("***"),
            SecretSource::Env(name) => write!(f, "env({name})"),
        }
    }
}
