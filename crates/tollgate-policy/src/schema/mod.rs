//! The JSON Schema of the file, for editors.
//!
//! The tests generate it from the types that the file is read into, so the two always agree.

#[cfg(test)]
mod tests;

use serde_json::Value;

/// The schema as text: what `tollgate schema` prints.
pub const SCHEMA: &str = include_str!("tollgate.schema.json");

/// Whether some map of the file has a field with this name.
pub(crate) fn has_field(name: &str) -> bool {
    fn is_in(schema: &Value, name: &str) -> bool {
        match schema {
            Value::Object(members) => members.iter().any(|(keyword, value)| {
                let is_named = keyword == "properties" && value.get(name).is_some();
                is_named || is_in(value, name)
            }),
            Value::Array(items) => items.iter().any(|item| is_in(item, name)),
            _ => false,
        }
    }
    serde_json::from_str(SCHEMA).is_ok_and(|schema| is_in(&schema, name))
}
