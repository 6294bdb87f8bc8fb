//! Generator of the OpenAPI description: from the types in [`request`] and [`answer`].

pub(crate) mod answer;
mod examples;
mod fields;
mod paths;
pub(crate) mod request;
mod tests;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The description as a value.
pub(crate) fn document() -> Value {
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
    /// A schema of a request says which members are optional; that of an answer says which are
    /// always there.
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
