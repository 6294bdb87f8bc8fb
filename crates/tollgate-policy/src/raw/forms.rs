//! Types of values that several fields share.

use super::decode::{ONE_ATTRIBUTE, TIER_NAME, entries, item, text, wrong_type};
use super::{At, Decode, raw};
use crate::diagnostic::Report;
use crate::yaml::{Node, Value};
use std::fmt;
use std::ops::Deref;

/// A text. Numbers and booleans are taken as written, so `42` needs no quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub String);

/// The name of one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneAttribute(pub String);

/// The tier of an entry in a tier map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedTier(pub String);

/// A rate such as `100/min`, a bare number of slots, or `unlimited`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateText(pub String);

/// A duration such as `30s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationText(pub String);

/// A size such as `64MiB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeText(pub String);

/// A share such as `20%`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PercentText(pub String);

/// A decimal number, kept as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal(pub String);

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

macro_rules! text_form {
    ($($name:ident)*) => {$(
        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Decode for $name {
            fn decode(node: &Node, report: &mut Report) -> Option<Self> {
                text(node, report).map(|text| Self(text.to_owned()))
            }
        }
    )*};
}

text_form! { Text RateText DurationText SizeText PercentText Decimal SecretText }

macro_rules! named_text {
    ($($name:ident $wanted:expr;)*) => {$(
        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Decode for $name {
            fn decode(node: &Node, report: &mut Report) -> Option<Self> {
                match &node.value {
                    Value::Scalar { text, .. } => Some(Self(text.clone())),
                    _ => wrong_type(node, $wanted, report),
                }
            }
        }
    )*};
}

named_text! {
    OneAttribute ONE_ATTRIBUTE;
    MappedTier TIER_NAME;
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
