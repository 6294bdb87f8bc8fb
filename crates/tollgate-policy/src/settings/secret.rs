//! Secrets of a file, which are never shown.

use std::fmt;

/// A secret, or the name of the environment variable that holds it. Debug output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(SecretSource);

/// The place of a [`Secret`].
#[derive(Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// The secret itself, from the file.
    Literal(Box<str>),
    /// The name of an environment variable.
    Env(Box<str>),
}

impl Secret {
    pub(crate) fn literal(text: impl Into<Box<str>>) -> Self {
        Self(SecretSource::Literal(text.into()))
    }

    pub(crate) fn env(name: impl Into<Box<str>>) -> Self {
        Self(SecretSource::Env(name.into()))
    }

    /// Returns the secret or the name of its variable. The method is called `expose` so that every
    /// use stands out.
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
