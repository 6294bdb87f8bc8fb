//! The OpenAPI description of the check API, generated from the types in [`request`] and
//! [`answer`].

pub mod answer;
mod examples;
mod fields;
mod paths;
pub mod request;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// The description as it is served and committed: JSON, indented, with a line break at the end.
pub fn openapi() -> &'static [u8] {
    static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| format!("{:#}\n", document()).into_bytes());
    &TEXT
}

/// The description as a value.
pub fn document() -> Value {
    let mut types = SchemaTypes::new();
    let paths = paths::paths(&mut types);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate check API",
            "summary": "Asks whether a request may go on.",
            "description": DESCRIPTION,
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:8081", "description": "Where `tollgate serve` listens by default."}],
        "paths": paths,
        "components": {
            "schemas": types.into_definitions(),
            "headers": fields::components(),
        },
    })
}

const DESCRIPTION: &str = "Bodies are JSON of at most 64 KiB, sent with `Content-Type: application/json`. Members that are \
    unknown or given twice are mistakes. Times are in seconds, exact to the microsecond. A refusal is an answer, with the \
    same shape as an admission; everything that is not an answer is a problem after RFC 9457, whose `field` names the member \
    to look at. Another method is answered with 405 and `Allow`, another path with 404.";

/// Collects the definitions of the types that the paths refer to.
struct SchemaTypes {
    /// A request says what may be left out, an answer what will be there.
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl SchemaTypes {
    fn new() -> Self {
        let settings = SchemaSettings::draft2020_12()
            .with(|settings| settings.definitions_path = "/components/schemas".into());
        Self {
            requests: settings.clone().for_deserialize().into_generator(),
            answers: settings.for_serialize().into_generator(),
        }
    }

    fn request<T: JsonSchema>(&mut self) -> Value {
        self.requests.subschema_for::<T>().to_value()
    }

    fn answer<T: JsonSchema>(&mut self) -> Value {
        self.answers.subschema_for::<T>().to_value()
    }

    fn into_definitions(mut self) -> Map<String, Value> {
        let mut definitions = self.requests.take_definitions(true);
        definitions.extend(self.answers.take_definitions(true));
        definitions
    }
}

#[cfg(test)]
mod tests;
