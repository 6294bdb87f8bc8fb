//! The reference documents every field and every code, so that none can be added without it.

use super::repository;
use serde_json::Value;
use std::collections::BTreeSet;
use tollgate_policy::diagnostic::codes;

fn reference() -> String {
    std::fs::read_to_string(repository("docs/reference.md")).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(tollgate_policy::SCHEMA).unwrap()
}

fn fields(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties") {
                found.extend(properties.keys().cloned());
            }
            members.values().for_each(|member| fields(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        _ => {}
    }
}

#[test]
fn every_field_is_in_the_reference() {
    let reference = reference();
    let mut names = BTreeSet::new();
    fields(&schema(), &mut names);
    assert!(names.len() > 60, "the schema was not read: {names:?}");
    for name in names {
        assert!(reference.contains(&format!("`{name}`")), "`{name}` is not in docs/reference.md");
    }
}

#[test]
fn every_word_is_in_the_reference() {
    let reference = reference();
    let mut words = BTreeSet::new();
    constants(&schema(), &mut words);
    for word in words {
        assert!(reference.contains(&format!("`{word}`")), "`{word}` is not in docs/reference.md");
    }
}

fn constants(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            found.extend(members.get("const").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| constants(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| constants(item, found)),
        _ => {}
    }
}

#[test]
fn every_code_is_in_the_reference() {
    let page = std::fs::read_to_string(repository("docs/errors.md")).unwrap();
    for code in codes::ALL {
        let row = format!("| {} | {} | {} |", code.code, code.title, code.explanation);
        assert!(page.contains(&row), "docs/errors.md lacks the row\n{row}");
    }
}
