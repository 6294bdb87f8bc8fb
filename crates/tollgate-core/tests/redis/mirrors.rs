//! Property 11: every answer, receipt and state of a Lua mirror equals that of its Rust source.

use crate::model::{Coverage, Model, Played};
use crate::plan::{Plan, plan};
use crate::server::Server;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};
use std::cell::RefCell;
use tollgate_core::lua;

const DRIVER: &str = include_str!("driver.lua");

#[test]
fn fixed_window() {
    decides_as_rust_does("fixed-window");
}

#[test]
fn calendar_window() {
    decides_as_rust_does("calendar-window");
}

#[test]
fn sliding_window() {
    decides_as_rust_does("sliding-window");
}

#[test]
fn sliding_log() {
    decides_as_rust_does("sliding-log");
}

#[test]
fn token_bucket() {
    decides_as_rust_does("token-bucket");
}

#[test]
fn leaky_bucket() {
    decides_as_rust_does("leaky-bucket");
}

#[test]
fn gcra() {
    decides_as_rust_does("gcra");
}

#[test]
fn concurrency() {
    decides_as_rust_does("concurrency");
}

fn decides_as_rust_does(algorithm: &'static str) {
    let server = RefCell::new(Server::start());
    let coverage = RefCell::new(Coverage::default());
    let script = script(algorithm);
    let seeds = FileFailurePersistence::Direct("tests/redis/regressions.txt");
    let config = Config { failure_persistence: Some(Box::new(seeds)), ..Config::default() };
    let cases = config.cases;
    let result = TestRunner::new(config).run(&plan(), |plan| {
        compare(algorithm, &script, &plan, &mut server.borrow_mut(), &mut coverage.borrow_mut())
    });
    let coverage = coverage.into_inner();
    println!("{algorithm}: {cases} traces, {coverage:?}");
    result.unwrap_or_else(|error| panic!("{algorithm}: {error}"));
    if cases >= 64 {
        assert!(coverage.refusals * 10 >= coverage.decisions * 3, "too few refusals: {coverage:?}");
        assert!(coverage.costs_above_one * 10 >= coverage.decisions, "too few costs: {coverage:?}");
        assert!(coverage.at_a_boundary * 10 >= coverage.operations, "too few edges: {coverage:?}");
        let rare = [coverage.give_backs, coverage.debts, coverage.steps_back, coverage.new_numbers];
        assert!(rare.iter().all(|seen| seen * 50 >= coverage.operations), "{coverage:?}");
        // A run has five to forty of them; a lower bound keeps the test stable.
        assert!(coverage.redated > 0, "no leap: {coverage:?}");
    }
}

/// The whole mirror, and then the driver, which calls it `mirror`.
fn script(algorithm: &str) -> String {
    let alias = format!("local mirror = {}", algorithm.replace('-', "_"));
    lua::compose(lua::parts(algorithm).unwrap().iter().copied().chain([alias.as_str(), DRIVER]))
}

fn compare(
    algorithm: &str,
    script: &str,
    plan: &Plan,
    server: &mut Server,
    coverage: &mut Coverage,
) -> Result<(), TestCaseError> {
    let mut model = Model::new(algorithm, plan, coverage);
    let played: Vec<Played> = plan.steps.iter().map(|step| model.play(*step)).collect();
    let arguments: Vec<String> = played.iter().flat_map(|op| op.arguments.clone()).collect();
    let rows = server.eval(script, "trace", &arguments);
    assert_eq!(rows.len(), played.len());
    for (at, (op, row)) in played.iter().zip(&rows).enumerate() {
        if op.expected != *row {
            let so_far: Vec<String> = played[..=at]
                .iter()
                .map(|op| op.arguments.join(" ") + "  ->  " + &op.expected)
                .collect();
            return Err(TestCaseError::fail(format!(
                "op now amount from count period burst queue  ->  \
                 admitted limit remaining retry reset delay more | at mark fraction | state | idle\n{}\n\
                 Rust: {}\nLua:  {row}",
                so_far.join("\n"),
                op.expected
            )));
        }
    }
    Ok(())
}
