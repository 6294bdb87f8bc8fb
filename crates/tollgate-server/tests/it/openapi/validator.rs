//! Validates values with an independent program: Python's `jsonschema`, a dependency of
//! schemathesis.

use super::generate::document;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

const PROGRAM: &str = r##"
import json, sys
from jsonschema import Draft202012Validator

components = json.loads(sys.stdin.readline())
validators = {}
for line in sys.stdin:
    name, value = json.loads(line)
    if name not in validators:
        schema = {"$ref": "#/components/schemas/" + name, "components": components}
        Draft202012Validator.check_schema(schema)
        validators[name] = Draft202012Validator(
            schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    errors = sorted(error.message for error in validators[name].iter_errors(value))
    print(json.dumps(errors))
"##;

/// The errors of each value, by the schema with that name.
pub(super) fn errors(values: &[(&str, Value)]) -> Vec<Vec<String>> {
    let mut input = format!("{}\n", document()["components"]);
    for (schema, value) in values {
        let _ = writeln!(input, "[\"{schema}\",{value}]");
    }
    let mut python = Command::new("python3")
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is needed; `cargo xtask test` installs what is missing");
    let mut stdin = python.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = python.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "python3 with the package jsonschema (of schemathesis) is needed"
    );
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let found: Vec<Vec<String>> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), values.len());
    found
}

#[test]
fn the_validator_finds_something() {
    let values = [("Ttl", Value::from("2h")), ("Ttl", "1h".into()), ("Problem", Value::Null)];
    let found: Vec<bool> = errors(&values).iter().map(|errors| errors.is_empty()).collect();
    assert_eq!(found, [false, true, false]);
}
