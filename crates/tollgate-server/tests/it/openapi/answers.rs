//! The encoder writes what the description says.

use super::generate::answer::{Reserved, Settled, Verdict};
use super::validator::errors;
use serde_json::{Value, from_value};
use tollgate::MemoryStore;
use tollgate::engine::{Gate, GateBuffers, GateSetup, ReservationEnd};
use tollgate_server::front::http::encode;

/// A policy with every algorithm, mode and special case.
const POLICY: &str = r#"
limits:
  - {name: window, key: [user], rate: 3/min}
  - {name: fixed, key: [user], algorithm: fixed-window, rate: 4/h}
  - {name: log, key: [user], algorithm: sliding-log, rate: 5/min}
  - {name: bucket, key: [user], algorithm: token-bucket, rate: 7/s, burst: 3}
  - {name: gcra, key: [user], algorithm: gcra, rate: 1000007/s, tiers: {pro: 7/min}}
  - {name: 'queue "x"\y', key: [user], algorithm: leaky-bucket, rate: 2/s, queue: 3}
  - {name: slots, key: [user], algorithm: concurrency, rate: 3}
  - {name: nobody, match: {path: /closed}, rate: 0/s}
  - {name: quiet, key: [ip], rate: 2/min, disclose: false}
  - {name: watched, key: [user], rate: 1/366d, mode: shadow}
  - {name: strict, key: [user], rate: 2/min, penalty: {after: 1, block: 1m}}
  - {name: off, rate: 1/s, mode: off}
  - {name: free, rate: unlimited}
  - {name: needs, key: [ip, username], on_missing: refuse, match: {path: /login}, rate: 1/s}
"#;

fn parsed(mut bytes: Vec<u8>) -> Value {
    bytes.push(b'}');
    serde_json::from_slice(&bytes).unwrap()
}

/// Answers to many requests of a few users, each with the name of its schema.
fn answers() -> Vec<(&'static str, Value)> {
    let compiled = tollgate::engine::policy::compile(POLICY.as_bytes()).unwrap();
    let gate = Gate::new(GateSetup::of(&compiled), MemoryStore::default()).unwrap();
    let rules = gate.rules();
    let mut work = GateBuffers::default();
    let mut answers = Vec::new();
    for turn in 0..200_u64 {
        let now_us = 1_700_000_000_000_000 + turn * 377_777;
        let mut facts = rules.facts(Default::default());
        let user = ["42", "7", ""][turn as usize % 3];
        facts.set("user", user).unwrap();
        facts.set("path", ["/api", "/closed", "/login", "/x"][turn as usize / 3 % 4]).unwrap();
        facts.set("ip", ["203.0.113.7", ""][turn as usize / 7 % 2]).unwrap();
        let cost = [1, 0, 2, u64::MAX][turn as usize / 11 % 4];
        let mut out = Vec::new();
        encode::verdict(&mut out, &gate.peek(&rules, now_us, &facts, cost, &mut work).now());
        answers.push(("Verdict", parsed(std::mem::take(&mut out))));
        encode::verdict(&mut out, &gate.check(&rules, now_us, &facts, cost, &mut work).now());
        answers.push(("Verdict", parsed(std::mem::take(&mut out))));
        let id = format!("turn-{turn}");
        let reserved = gate.reserve(&rules, now_us, &id, &facts, cost, None, &mut work).now();
        let Ok((verdict, expires)) = reserved else { continue };
        encode::verdict(&mut out, &verdict);
        let Some(ttl_us) = expires else {
            answers.push(("Verdict", parsed(out)));
            continue;
        };
        out.extend_from_slice(format!(",\"reservation\":\"{id}\",\"expires_after\":").as_bytes());
        encode::seconds(&mut out, ttl_us);
        answers.push(("Reserved", parsed(std::mem::take(&mut out))));
        let end = if turn % 2 == 0 { ReservationEnd::Settle(5) } else { ReservationEnd::Cancel };
        let settled = gate.end(now_us, &id, end).now().unwrap();
        let charged = settled.charged;
        out.extend_from_slice(
            format!("{{\"reservation\":\"{id}\",\"charged\":{charged},\"limits\":").as_bytes(),
        );
        encode::rows(&mut out, settled.rows());
        answers.push(("Settled", parsed(out)));
    }
    answers
}

#[test]
fn real_answers_are_valid_and_hold_nothing_else() {
    let answers = answers();
    for name in ["Verdict", "Reserved", "Settled"] {
        assert!(answers.iter().filter(|(schema, _)| *schema == name).count() > 5, "{name}");
    }
    for ((name, answer), errors) in answers.iter().zip(errors(&answers)) {
        assert!(errors.is_empty(), "{name} {answer}\n{errors:?}");
        // The schemas are open, so that later versions may add members. This version has no others.
        let again = match *name {
            "Verdict" => serde_json::to_value(from_value::<Verdict>(answer.clone()).unwrap()),
            "Reserved" => serde_json::to_value(from_value::<Reserved>(answer.clone()).unwrap()),
            _ => serde_json::to_value(from_value::<Settled>(answer.clone()).unwrap()),
        };
        assert_eq!(again.unwrap(), *answer);
    }
}

#[test]
fn the_samples_in_the_description_are_valid() {
    let document = super::generate::document();
    let mut samples = Vec::new();
    for path in ["check", "peek", "reserve", "settle", "cancel"] {
        let call = &document["paths"][format!("/v1/{path}")]["post"];
        let sample = &call["requestBody"]["content"]["application/json"];
        for example in sample["examples"].as_object().unwrap().values() {
            samples.push((name(&sample["schema"]), example["value"].clone()));
        }
        for response in call["responses"].as_object().unwrap().values() {
            for media in response["content"].as_object().unwrap().values() {
                if let Some(example) = media.get("example") {
                    samples.push((name(&media["schema"]), example.clone()));
                }
            }
        }
    }
    assert!(samples.len() > 30, "{}", samples.len());
    let named: Vec<(&str, Value)> =
        samples.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    for (sample, errors) in named.iter().zip(errors(&named)) {
        assert!(errors.is_empty(), "{sample:?}\n{errors:?}");
    }
}

fn name(schema: &Value) -> String {
    schema["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}
