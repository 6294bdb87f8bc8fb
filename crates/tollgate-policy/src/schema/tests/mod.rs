//! The schema is generated here, and compared with the file that ships.

mod forms;

use super::SCHEMA;
use crate::raw::File;
use serde_json::{Value, json};

fn generated() -> Value {
    let mut schema = schemars::schema_for!(File);
    schema.insert("title".to_owned(), "tollgate.yaml".into());
    schema.to_value()
}

#[test]
fn the_committed_schema_is_current() {
    let schema = serde_json::to_string_pretty(&generated()).unwrap() + "\n";
    if std::env::var_os("BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/schema/tollgate.schema.json");
        return std::fs::write(path, schema).unwrap();
    }
    assert!(SCHEMA == schema, "tollgate.schema.json differs; run again with BLESS=1, and review");
}

#[test]
fn maps_with_named_fields_are_closed() {
    let schema = generated();
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        if definition.get("properties").is_some() && name != "Match" {
            assert_eq!(definition["additionalProperties"], Value::Bool(false), "{name}");
        }
    }
    assert_eq!(schema["additionalProperties"], Value::Bool(false));
    assert_eq!(schema["$defs"]["Limit"]["required"], json!(["name", "rate"]));
}
