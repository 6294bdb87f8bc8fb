//! The JSON Schema of the file, for editors.

use crate::raw::File;
use serde_json::Value;

/// Generated from the types that the file is read into, so it cannot say anything else.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(File);
    schema.insert("title".to_owned(), "tollgate.yaml".into());
    schema.to_value()
}
