//! The committed JSON Schema is the one of the types.

use super::{committed, repository};
use serde_json::Value;

#[test]
fn the_committed_schema_is_current() {
    let schema = serde_json::to_string_pretty(&tollgate_policy::schema()).unwrap() + "\n";
    committed(&repository("docs/tollgate.schema.json"), &schema);
}

#[test]
fn maps_with_named_fields_are_closed() {
    let schema = tollgate_policy::schema();
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        if definition.get("properties").is_some() && name != "Match" {
            assert_eq!(definition["additionalProperties"], Value::Bool(false), "{name}");
        }
    }
    assert_eq!(schema["additionalProperties"], Value::Bool(false));
    let required = &schema["$defs"]["Limit"]["required"];
    assert_eq!(*required, serde_json::json!(["name", "rate"]));
}
