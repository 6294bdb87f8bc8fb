//! Decodes the tree into raw types, and reports every error.

use super::At;
use crate::diagnostic::{Position, Report, codes, listed, nearest, quoted};
use crate::yaml::{Node, ScalarKind, Value, YamlKey};

/// Decodes a value, or reports why it is invalid.
pub(crate) trait Decode: Sized {
    fn decode(node: &Node, report: &mut Report) -> Option<Self>;
}

/// Decodes the value of a field. A field without a value counts as absent.
pub(crate) fn field<T: Decode>(key: &YamlKey, node: &Node, report: &mut Report) -> Option<At<T>> {
    if is_null(node) {
        return None;
    }
    Some(At { value: T::decode(node, report)?, at: node.at, name_at: key.at })
}

/// Decodes an item of a list.
pub(crate) fn item<T: Decode>(node: &Node, report: &mut Report) -> Option<At<T>> {
    Some(At { value: T::decode(node, report)?, at: node.at, name_at: node.at })
}

pub(crate) const fn is_null(node: &Node) -> bool {
    matches!(node.value, Value::Null)
}

/// Returns the entries of a map, or reports another type.
pub(crate) fn entries<'a>(node: &'a Node, report: &mut Report) -> Option<&'a [(YamlKey, Node)]> {
    match &node.value {
        Value::Map(entries) => Some(entries),
        _ => wrong_type(node, "a map", report),
    }
}

/// Returns the text of a scalar as written, or reports another type.
pub(crate) fn text<'a>(node: &'a Node, report: &mut Report) -> Option<&'a str> {
    node.text().or_else(|| wrong_type(node, TEXT, report))
}

/// The expected type of a field with a text, for errors.
pub(crate) const TEXT: &str = "a text";
/// The expected type of a field with one attribute, for errors.
pub(crate) const ONE_ATTRIBUTE: &str = "one attribute";
/// The expected type of a tier in a map, for errors.
pub(crate) const TIER_NAME: &str = "the name of a tier";

/// Reports that a value has the wrong type. The message does not quote the value, which may be a
/// misplaced secret.
pub(crate) fn wrong_type<T>(node: &Node, wanted: &str, report: &mut Report) -> Option<T> {
    let found = match &node.value {
        Value::Null => "nothing",
        Value::Scalar { kind: ScalarKind::Text, .. } => "a text",
        Value::Scalar { kind: ScalarKind::Bool(_), .. } => "true or false",
        Value::Scalar { .. } => "a number",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    };
    let help = match wanted {
        "a map" => "write fields below it, indented: `field: value`",
        "a list" => "write items as [a, b], or below it, each after `- `",
        ONE_ATTRIBUTE => "write one attribute, such as `api_key`",
        TIER_NAME => "a map is `key: tier`, such as `key-1: pro`: each key has one tier",
        "true or false" => "write `true` or `false`",
        "a whole number" if found == "a text" => "write the digits without quotes",
        _ => "see docs/reference.md for the values of the field",
    };
    report.error(codes::WRONG_TYPE, node.at, format!("expected {wanted}, found {found}"), help);
    None
}

/// Reports an unknown field. Its name is quoted if it resembles a known field, or if it cannot be a
/// secret: the key of a misplaced tier map may be an API key.
pub(crate) fn unknown_field(key: &YamlKey, known: &[&'static str], report: &mut Report) {
    const NAME_BYTES_MAX: usize = 20;
    let has_tier_map = known.contains(&"map");
    let is_shown = !has_tier_map
        && key.text.len() <= NAME_BYTES_MAX
        && key.text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let known = known.iter().map(|field| without_raw_prefix(field));
    let name = quoted(&key.text);
    let (message, help) = match nearest(&key.text, known.clone()) {
        Some(near) => {
            (format!("unknown field {name}, did you mean `{near}`?"), format!("write `{near}`"))
        }
        None => {
            let name = if is_shown { format!(" {name}") } else { String::new() };
            (format!("unknown field{name}"), format!("the fields here are {}", listed(known)))
        }
    };
    report.error(codes::UNKNOWN_FIELD, key.at, message, help);
}

pub(crate) fn unknown_word(at: Position, word: &str, known: &[&str], report: &mut Report) {
    let near = nearest(word, known.iter().copied());
    let meant = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
    let message = format!("unknown value {}{meant}", quoted(word));
    let help = format!("write {}", listed(known.iter().copied()));
    report.error(codes::UNKNOWN_VALUE, at, message, help);
}

/// Removes the `r#` of a Rust field that is named like a keyword.
pub(crate) fn without_raw_prefix(name: &'static str) -> &'static str {
    name.strip_prefix("r#").unwrap_or(name)
}

impl Decode for bool {
    fn decode(node: &Node, report: &mut Report) -> Option<Self> {
        match &node.value {
            Value::Scalar { kind: ScalarKind::Bool(value), .. } => Some(*value),
            _ => wrong_type(node, "true or false", report),
        }
    }
}

impl Decode for u64 {
    fn decode(node: &Node, report: &mut Report) -> Option<Self> {
        match &node.value {
            Value::Scalar { kind: ScalarKind::Unsigned(value), .. } => Some(*value),
            Value::Scalar { kind: ScalarKind::Number, text } => {
                let message = format!("expected a whole number, found {}", quoted(text));
                let help = "write digits only: no sign, no fraction, no exponent";
                report.error(codes::BAD_NUMBER, node.at, message, help);
                None
            }
            _ => wrong_type(node, "a whole number", report),
        }
    }
}

/// Defines a map with named fields.
macro_rules! raw {
    ($(#[$meta:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default)]
        #[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$about])* pub $field: $crate::raw::Field<$type>,)*
            /// Fields that are present but invalid. They are reported already, and not missing.
            #[cfg_attr(test, schemars(skip))]
            pub unreadable: Vec<&'static str>,
        }

        impl $crate::raw::Decode for $name {
            fn decode(
                node: &$crate::yaml::Node,
                report: &mut $crate::diagnostic::Report,
            ) -> Option<Self> {
                use $crate::raw::decode::{entries, field, is_null, without_raw_prefix, unknown_field};
                let mut this = Self::default();
                for (key, value) in entries(node, report)? {
                    match key.text.as_str() {
                        $(name if name == without_raw_prefix(stringify!($field)) => {
                            this.$field = field(key, value, report);
                            if this.$field.is_none() && !is_null(value) {
                                this.unreadable.push(without_raw_prefix(stringify!($field)));
                            }
                        })*
                        _ => unknown_field(key, &[$(stringify!($field)),*], report),
                    }
                }
                Some(this)
            }
        }
    };
}

/// Defines an enum of words.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$about])* #[cfg_attr(test, schemars(rename = $word))] $variant,)*
        }

        impl $name {
            const WORDS: &[&str] = &[$($word),*];

            /// The word in the file.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        /// The first word is the default.
        impl Default for $name {
            fn default() -> Self {
                [$(Self::$variant),*][0]
            }
        }

        impl $crate::raw::Decode for $name {
            fn decode(
                node: &$crate::yaml::Node,
                report: &mut $crate::diagnostic::Report,
            ) -> Option<Self> {
                match $crate::raw::decode::text(node, report)? {
                    $($word => Some(Self::$variant),)*
                    other => {
                        $crate::raw::decode::unknown_word(node.at, other, Self::WORDS, report);
                        None
                    }
                }
            }
        }
    };
}

/// Defines a type with a short form, a scalar, and a long form, a map.
macro_rules! either {
    ($(#[$meta:meta])* $name:ident { $(#[$a:meta])* $short:ident($short_type:ty), $(#[$b:meta])* $long:ident($long_type:ty), }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        #[cfg_attr(test, derive(schemars::JsonSchema), schemars(untagged))]
        pub enum $name {
            $(#[$a])* $short($short_type),
            $(#[$b])* $long(Box<$long_type>),
        }

        impl $crate::raw::Decode for $name {
            fn decode(
                node: &$crate::yaml::Node,
                report: &mut $crate::diagnostic::Report,
            ) -> Option<Self> {
                match node.value {
                    $crate::yaml::Value::Map(_) => {
                        <$long_type>::decode(node, report).map(|long| Self::$long(Box::new(long)))
                    }
                    _ => <$short_type>::decode(node, report).map(Self::$short),
                }
            }
        }
    };
}

pub(crate) use {either, raw, words};
