//! Types of values that several fields share.

use super::decode::{ONE_ATTRIBUTE, TEXT, TIER_NAME, entries, item, wrong_type};
use super::{At, Decode, raw};
use crate::diagnostic::Report;
use crate::yaml::{Node, Value};
use std::fmt;
use std::ops::Deref;

/// Implements a form: a scalar as written. `$wanted` names the form in errors.
macro_rules! text_form {
    ($name:ident, $wanted:expr) => {
        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Decode for $name {
            fn decode(node: &Node, report: &mut Report) -> Option<Self> {
                let text = node.text().or_else(|| wrong_type(node, $wanted, report))?;
                Some(Self(text.to_owned()))
            }
        }
    };
}

macro_rules! text_forms {
    ($($(#[$about:meta])* $name:ident = $wanted:expr,)*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(pub String);

        text_form!($name, $wanted);
    )*};
}

text_forms! {
    /// A text. Numbers and booleans are taken as written, so `42` needs no quotes.
    Text = TEXT,
    /// The name of one attribute.
    OneAttribute = ONE_ATTRIBUTE,
    /// The tier of an entry in a tier map.
    MappedTier = TIER_NAME,
    /// A rate such as `100/min`, a bare number of slots, or `unlimited`.
    RateText = TEXT,
    /// A duration such as `30s`.
    DurationText = TEXT,
    /// A size such as `64MiB`.
    SizeText = TEXT,
    /// A share such as `20%`.
    PercentText = TEXT,
    /// A decimal number, kept as text.
    Decimal = TEXT,
}

text_form!(SecretText, TEXT);

/// A text that may be or contain a secret. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(pub(crate) String);

/// A list.
pub type List<T> = Vec<At<T>>;

/// One value, or a list of them.
#[derive(Clone, Debug)]
pub struct OneOrMany<T>(pub Vec<At<T>>);

/// A map with keys that the user chooses.
#[derive(Clone, Debug)]
pub struct Entries<T>(pub Vec<(At<String>, At<T>)>);

raw! {
    /// A secret from the environment.
    SecretEnv {
        /// The name of the environment variable.
        env: Text,
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T: Decode> Decode for Vec<At<T>> {
    fn decode(node: &Node, report: &mut Report) -> Option<Self> {
        match &node.value {
            Value::List(items) => {
                Some(items.iter().filter_map(|node| item(node, report)).collect())
            }
            _ => wrong_type(node, "a list", report),
        }
    }
}

impl<T: Decode> Decode for OneOrMany<T> {
    fn decode(node: &Node, report: &mut Report) -> Option<Self> {
        match &node.value {
            Value::List(_) => Vec::decode(node, report).map(Self),
            _ => item(node, report).map(|only| Self(vec![only])),
        }
    }
}

impl<T: Decode> Decode for Entries<T> {
    fn decode(node: &Node, report: &mut Report) -> Option<Self> {
        let mut list = Vec::new();
        for (key, node) in entries(node, report)? {
            if let Some(value) = T::decode(node, report) {
                let name = At { value: key.text.clone(), at: key.at, name_at: key.at };
                list.push((name, At { value, at: node.at, name_at: key.at }));
            }
        }
        Some(Self(list))
    }
}
