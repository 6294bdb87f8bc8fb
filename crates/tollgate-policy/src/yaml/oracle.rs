//! The tree of a file as serde-saphyr composes it, an independent reader of the same events.

use super::{DEPTH_MAX, ScalarKind};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::fmt;

/// A node and its position.
#[derive(Debug, PartialEq)]
pub(super) struct Expected(pub(super) ExpectedValue, pub(super) (u32, u32));

#[derive(Debug, PartialEq)]
pub(super) enum ExpectedValue {
    Null,
    Text(String),
    Other(ScalarKind),
    List(Vec<Expected>),
    Map(Vec<(String, Expected)>),
}

/// Reads `text`; `None` if it is refused.
pub(super) fn expected(text: &str) -> Option<Expected> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEPTH_MAX, flow_nesting_limit: DEPTH_MAX },
        strict_booleans: true,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options::<Option<Expected>>(text, options)
        .ok()
        .map(|node| node.unwrap_or(Expected(ExpectedValue::Null, (1, 1))))
}

impl<'de> Deserialize<'de> for Expected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = Spanned::<ExpectedValue>::deserialize(deserializer)?;
        let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).max(1);
        let at = (number(node.defined.line()), number(node.defined.column()));
        Ok(Self(node.value, at))
    }
}

impl<'de> Deserialize<'de> for ExpectedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = ExpectedValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<ExpectedValue, E> {
        Ok(ExpectedValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<ExpectedValue, E> {
        Ok(ExpectedValue::Other(ScalarKind::Bool(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<ExpectedValue, E> {
        Ok(ExpectedValue::Other(ScalarKind::Unsigned(value)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<ExpectedValue, E> {
        Ok(ExpectedValue::Other(ScalarKind::Number))
    }

    fn visit_f64<E>(self, _: f64) -> Result<ExpectedValue, E> {
        Ok(ExpectedValue::Other(ScalarKind::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<ExpectedValue, E> {
        Ok(ExpectedValue::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ExpectedValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(ExpectedValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<ExpectedValue, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(ExpectedValue::Map(map))
    }
}
