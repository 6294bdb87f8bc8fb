//! The body of every call, from a hostile client. Nothing panics, and quotes and allocations are
//! bounded. An independent JSON reader accepts the same bodies, and reads the same values.
#![no_main]

use std::collections::BTreeMap;
use std::fmt::Write;

use libfuzzer_sys::fuzz_target;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Number;

/// Only the decoder: the rest of the server would take most of the build time.
#[path = "../../crates/tollgate-server/src/front/http/decode/mod.rs"]
#[allow(dead_code, unfulfilled_lint_expectations)]
mod decode;

use decode::{
    ATTRIBUTES_MAX, BODY_BYTES_MAX, BadRequest, Body, NAME_BYTES_MAX, Op, RESERVATION_BYTES_MAX,
    VALUE_BYTES_MAX, body, row,
};

/// The longest error message. It quotes only a part of the body.
const MESSAGE_BYTES_MAX: usize = 1024;
const HOUR_US: u64 = 3_600_000_000;

fuzz_target!(|input: &[u8]| {
    let bytes_max = 4 * input.len() as u64 + 32 * 1024;
    for op in Op::ALL {
        let mut read = None;
        let cost = allocation_counter::measure(|| read = Some(body(input, op)));
        assert!(cost.bytes_max <= bytes_max, "{} bytes for {}", cost.bytes_max, input.len());
        let model = model(input, op);
        match (read, &model) {
            (Some(Ok(body)), Some(model)) => {
                is_capped(&body);
                assert!(is_cost(body.cost, model.cost.as_ref()), "{body:?}, {:?}", model.cost);
                assert_eq!(as_model(&body, model.cost.clone()), *model);
                is_read_again(&body, op);
            }
            (Some(Err(why)), None) => is_short(&why),
            // The independent reader reads such costs as floats, which round.
            (Some(Err(why)), Some(Model { cost: Some(cost), .. })) if cost.is_f64() => {
                is_short(&why)
            }
            (read, model) => panic!("{read:?}, but another reader says {model:?}"),
        }
    }
    match row(input) {
        Ok(row) => is_capped(&row.body),
        Err(why) => is_short(&why),
    }
});

fn is_short(why: &BadRequest) {
    assert!(why.to_string().len() <= MESSAGE_BYTES_MAX, "{why}");
}

fn is_capped(body: &Body<'_>) {
    assert!(body.attributes.len() <= ATTRIBUTES_MAX);
    for (name, value) in &body.attributes {
        assert!((1..=NAME_BYTES_MAX).contains(&name.len()) && value.len() <= VALUE_BYTES_MAX);
    }
    assert!(body.ttl_us.is_none_or(|ttl_us| (1..=HOUR_US).contains(&ttl_us)));
    let length = body.reservation.as_ref().map_or(1, |reservation| reservation.len());
    assert!((1..=RESERVATION_BYTES_MAX).contains(&length));
}

/// The body is the same without unneeded escapes, and with every character escaped. The two use
/// different code in the reader.
fn is_read_again(given: &Body<'_>, op: Op) {
    for string in [plain, escaped] {
        let mut again = written(given, string);
        // Compared as text: a body borrows from its input, so bodies of two inputs have different
        // types.
        let read = body(&again, op).map(|body| format!("{body:?}"));
        assert_eq!(read, Ok(format!("{given:?}")), "{}", String::from_utf8_lossy(&again));
        again.push(b'}');
        assert!(body(&again, op).is_err(), "something follows");
    }
}

fn written(body: &Body<'_>, string: fn(&mut Vec<u8>, &str)) -> Vec<u8> {
    let mut out = b"{".to_vec();
    let mut member = |name: &str, write: &dyn Fn(&mut Vec<u8>)| {
        if out.len() > 1 {
            out.push(b',');
        }
        string(&mut out, name);
        out.push(b':');
        write(&mut out);
    };
    if let Some(cost) = body.cost {
        member("cost", &|out| out.extend_from_slice(cost.to_string().as_bytes()));
    }
    if let Some(ttl_us) = body.ttl_us {
        member("ttl", &|out| string(out, &format!("{}ms", ttl_us / 1000)));
    }
    if let Some(reservation) = &body.reservation {
        member("reservation", &|out| string(out, reservation));
    }
    if !body.attributes.is_empty() {
        member("attributes", &|out| {
            for (index, (name, value)) in body.attributes.iter().enumerate() {
                out.push(if index == 0 { b'{' } else { b',' });
                string(out, name);
                out.push(b':');
                string(out, value);
            }
            out.push(b'}');
        });
    }
    out.push(b'}');
    out
}

fn plain(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
}

fn escaped(out: &mut Vec<u8>, text: &str) {
    let mut string = String::from("\"");
    for unit in text.encode_utf16() {
        let _ = write!(string, "\\u{unit:04x}");
    }
    out.extend_from_slice(string.as_bytes());
    out.push(b'"');
}

/// A body as the independent reader sees it.
#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Model {
    attributes: Attributes,
    #[serde(deserialize_with = "present")]
    cost: Option<Number>,
    #[serde(deserialize_with = "present")]
    ttl: Option<String>,
    #[serde(deserialize_with = "present")]
    reservation: Option<String>,
    #[serde(skip)]
    ttl_us: u64,
}

#[derive(Debug, Default, PartialEq)]
struct Attributes(BTreeMap<String, String>);

/// The body by the independent reader, if its members and sizes fit the operation.
fn model(input: &[u8], op: Op) -> Option<Model> {
    // serde_json accepts an array for a struct, so this reads a map too. `Value` would not do: it
    // treats one member name specially.
    let object: BTreeMap<String, IgnoredAny> = serde_json::from_slice(input).ok()?;
    let mut model: Model = serde_json::from_slice(input).ok()?;
    model.cost.as_ref().is_none_or(|cost| !cost.is_i64() || cost.is_u64()).then_some(())?;
    if let Some(ttl) = model.ttl.take() {
        model.ttl_us = tollgate_policy::parse_duration_us(&ttl).ok()?;
        (1..=HOUR_US).contains(&model.ttl_us).then_some(())?;
    }
    let decides = matches!(op, Op::Check | Op::Peek | Op::Reserve);
    let has = |name| object.contains_key(name);
    let fits = input.len() <= BODY_BYTES_MAX
        && (decides || !has("attributes"))
        && (op == Op::Reserve || !has("ttl"))
        && (decides != has("reservation"))
        && (op != Op::Settle || has("cost"))
        && (op != Op::Cancel || !has("cost"))
        && model.attributes.0.len() <= ATTRIBUTES_MAX
        && model.attributes.0.iter().all(|(name, value)| {
            (1..=NAME_BYTES_MAX).contains(&name.len()) && value.len() <= VALUE_BYTES_MAX
        })
        && model
            .reservation
            .as_ref()
            .is_none_or(|id| (1..=RESERVATION_BYTES_MAX).contains(&id.len()));
    fits.then_some(model)
}

/// Whether both readers read the same cost, within the precision of a float.
fn is_cost(given: Option<u64>, read: Option<&Number>) -> bool {
    match (given, read) {
        (Some(given), Some(read)) if read.is_u64() => read.as_u64() == Some(given),
        (Some(given), Some(read)) => {
            read.as_f64().is_some_and(|read| (given as f64 - read).abs() <= read.abs() * 1e-15)
        }
        (given, read) => given.is_none() && read.is_none(),
    }
}

fn as_model(body: &Body<'_>, cost: Option<Number>) -> Model {
    let attributes = body.attributes.iter();
    Model {
        attributes: Attributes(attributes.map(|(n, v)| (n.to_string(), v.to_string())).collect()),
        cost,
        ttl: None,
        reservation: body.reservation.as_deref().map(String::from),
        ttl_us: body.ttl_us.unwrap_or_default(),
    }
}

/// A member that is present has a value.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Once;
        impl<'de> Visitor<'de> for Once {
            type Value = Attributes;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("attributes")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Attributes, A::Error> {
                let mut attributes = BTreeMap::new();
                while let Some((name, value)) = map.next_entry()? {
                    if attributes.insert(name, value).is_some() {
                        return Err(A::Error::custom("twice"));
                    }
                }
                Ok(Attributes(attributes))
            }
        }
        from.deserialize_map(Once)
    }
}
