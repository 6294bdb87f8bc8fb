//! The JSON Schema of the file, for editors.

use crate::raw::File;
use serde_json::Value;

/// Generates the schema from the types that the file is read into, so the two always agree.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(File);
    schema.insert("title".to_owned(), "tollgate.yaml".into());
    schema.to_value()
}

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
    is_in(&schema(), name)
}
