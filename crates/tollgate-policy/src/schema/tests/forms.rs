//! Schemas of values that are read by hand; those of maps and words are derived.

use crate::raw::{
    At, Conditions, Decimal, DurationText, Entries, MappedTier, Match, OneAttribute, OneOrMany,
    PercentText, PlainKey, RateText, SecretText, SizeText, Text,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

macro_rules! text_form {
    ($($name:ident $schema_name:literal $schema:tt)*) => {$(
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                $schema_name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

text_form! {
    Text "text" {
        "type": ["string", "number", "boolean"]
    }
    OneAttribute "text" {
        "type": ["string", "number", "boolean"]
    }
    MappedTier "text" {
        "type": ["string", "number", "boolean"]
    }
    RateText "rate" {
        "type": ["string", "integer"],
        "pattern": "^([0-9]+ ?/ ?[0-9]*(ms|s|secs?|m|mins?|h|hours?|d|days?|w|weeks?)|unlimited|[0-9]+)$",
        "minimum": 0,
        "maximum": 4294967295u64
    }
    DurationText "duration" {
        "type": "string",
        "pattern": "^[0-9]+(ms|s|secs?|m|mins?|h|hours?|d|days?|w|weeks?)$"
    }
    SizeText "size" {
        "type": ["string", "integer"],
        "pattern": "^[0-9]+(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)?$",
        "minimum": 0
    }
    PercentText "percent" {
        "type": "string",
        "pattern": "^[0-9]+%$"
    }
    Decimal "decimal" {
        "type": ["number", "string"],
        "pattern": "^[0-9]+(\\.[0-9]{1,3})?$",
        "minimum": 1
    }
    SecretText "secret" {
        "type": ["string", "number", "boolean"]
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("one-or-many-{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({"anyOf": [one, {"type": "array", "items": one}]})
    }
}

impl<T: JsonSchema> JsonSchema for Entries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("map-of-{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": generator.subschema_for::<T>()})
    }
}

impl JsonSchema for PlainKey {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "plain-key".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        OneOrMany::<Text>::json_schema(generator)
    }
}

impl JsonSchema for Match {
    fn schema_name() -> Cow<'static, str> {
        "Match".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let conditions = generator.subschema_for::<Conditions>();
        let patterns = generator.subschema_for::<OneOrMany<Text>>();
        json_schema!({
            "description": "Which requests a limit applies to: patterns by attribute; entries are ANDed, a list is OR.",
            "type": "object",
            "properties": {
                "not": {
                    "description": "Requests to leave out: those to which one whole map applies.",
                    "anyOf": [conditions, {"type": "array", "items": conditions}]
                }
            },
            "additionalProperties": patterns
        })
    }
}

impl JsonSchema for Conditions {
    fn schema_name() -> Cow<'static, str> {
        "Conditions".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let patterns = generator.subschema_for::<OneOrMany<Text>>();
        json_schema!({
            "description": "Patterns by attribute.",
            "type": "object",
            "propertyNames": {"not": {"const": "not"}},
            "additionalProperties": patterns
        })
    }
}
