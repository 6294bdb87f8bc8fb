//! Measures the time of a selection with 10 limits on distinct paths, and with 1,000. The second
//! should take less than twice as long: `cargo run --release -p tollgate-policy --example
//! selection_scales [ROUNDS]`.

use std::hint::black_box;
use std::time::Instant;

use tollgate_core::algorithm::Gcra;
use tollgate_core::{LimitParams, Rate};
use tollgate_policy::facts::FactsBuffer;
use tollgate_policy::limit::Limit;
use tollgate_policy::match_spec::{Condition, MatchSpec};
use tollgate_policy::policy::{Policy, PolicyOptions, Selection};

/// A limit's pattern and a path that it matches; `{}` is the limit's number.
const SHAPES: [(&str, &str); 3] = [
    ("/api/v1/resource-{}", "/api/v1/resource-{}"),
    ("/api/v1/resource-{}/**", "/api/v1/resource-{}/a/x"),
    ("/api/v1/resource-{}/*/x", "/api/v1/resource-{}/a/x"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(1_000_000), |rounds| rounds.parse())?;
    for (pattern, path) in SHAPES {
        for count in [10, 1_000] {
            let policy = policy(pattern, count)?;
            let paths: Vec<_> = (0..count).map(|number| numbered(path, number)).collect();
            let each_ns = each_ns(&policy, &paths, rounds)?;
            println!("{pattern:28} {count:5} limits {each_ns:5} ns");
        }
    }
    Ok(())
}

fn numbered(shape: &str, number: usize) -> String {
    shape.replace("{}", &number.to_string())
}

fn policy(pattern: &str, count: usize) -> Result<Policy, Box<dyn std::error::Error>> {
    let params = LimitParams::Gcra(Gcra::try_new(Rate::try_new(100, 60_000_000)?, None)?);
    let limit = |number: usize| {
        let patterns = vec![numbered(pattern, number)];
        let conditions = vec![Condition { attribute: "path".into(), patterns }];
        (Limit::new("l", &["user"], Some(params)), MatchSpec { conditions, not: vec![] })
    };
    Ok(Policy::new((0..count).map(limit).collect(), PolicyOptions::default())?)
}

fn each_ns(
    policy: &Policy,
    paths: &[String],
    rounds: u32,
) -> Result<u128, Box<dyn std::error::Error>> {
    let mut buffer = FactsBuffer::default();
    let mut selection = Selection::default();
    #[expect(clippy::disallowed_methods, reason = "this program measures")]
    let start = Instant::now();
    for round in 0..rounds {
        let mut facts = policy.facts(buffer);
        facts.set("user", "42")?;
        facts.set("path", &paths[round as usize % paths.len()])?;
        policy.select(&facts, 1, &mut selection);
        assert_eq!(black_box(&selection).len(), 1);
        buffer = facts.into_buffer();
    }
    Ok(start.elapsed().as_nanos() / u128::from(rounds.max(1)))
}
