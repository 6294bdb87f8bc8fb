//! How long a selection takes with 10 limits on distinct paths, and with 1,000: `cargo run --release --example
//! selection_scales -p tollgate-policy`. The second should take less than twice as long as the first.

use std::hint::black_box;
use std::time::Instant;

use tollgate_core::algorithm::Gcra;
use tollgate_core::{Numbers, Rate};
use tollgate_policy::facts::FactsBuffer;
use tollgate_policy::limit::Limit;
use tollgate_policy::match_spec::{Condition, MatchSpec};
use tollgate_policy::policy::{Policy, PolicyOptions, Selection};

const ROUNDS: u32 = 1_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for shape in ["/api/v1/resource-{}", "/api/v1/resource-{}/**", "/api/v1/resource-{}/*/x"] {
        for count in [10, 1_000] {
            let policy = policy(shape, count)?;
            let paths: Vec<_> = (0..count).map(|n| format!("{}/a/x", path(shape, n))).collect();
            let paths: Vec<_> = match shape.contains('*') {
                true => paths,
                false => (0..count).map(|n| path(shape, n)).collect(),
            };
            println!("{shape:28} {count:5} limits {:5} ns", nanoseconds(&policy, &paths)?);
        }
    }
    Ok(())
}

/// The path up to its wildcards.
fn path(shape: &str, number: usize) -> String {
    shape.replace("{}", &number.to_string()).trim_end_matches("/*/x").trim_end_matches("/**").into()
}

fn policy(shape: &str, count: usize) -> Result<Policy, Box<dyn std::error::Error>> {
    let numbers = Numbers::Gcra(Gcra::try_new(Rate::try_new(100, 60_000_000)?, None)?);
    let limit = |number: usize| {
        let pattern = shape.replace("{}", &number.to_string());
        let conditions = vec![Condition { attribute: "path".into(), patterns: vec![pattern] }];
        (Limit::new("l", &["user"], Some(numbers)), MatchSpec { conditions, not: vec![] })
    };
    Ok(Policy::new((0..count).map(limit).collect(), PolicyOptions::default())?)
}

fn nanoseconds(policy: &Policy, paths: &[String]) -> Result<u128, Box<dyn std::error::Error>> {
    let mut buffer = FactsBuffer::default();
    let mut selection = Selection::default();
    let start = Instant::now();
    for round in 0..ROUNDS {
        let mut facts = policy.facts(buffer);
        facts.set("user", "42")?;
        facts.set("path", &paths[round as usize % paths.len()])?;
        policy.select(&facts, 1, &mut selection);
        assert_eq!(black_box(&selection).len(), 1);
        buffer = facts.into_buffer();
    }
    Ok(start.elapsed().as_nanos() / u128::from(ROUNDS))
}
