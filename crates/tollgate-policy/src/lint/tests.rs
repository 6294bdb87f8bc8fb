//! What `cover` claims holds for every request of a small world.

use super::cover::{Pattern, Shape};
use crate::glob::Glob;
use crate::match_spec::{Condition, MatchSpec};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;

const PATHS: [&str; 12] =
    ["/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/ab/c", "/login", "/a/login", "/b", "/b/a", "/A"];
const PATTERNS: [&str; 16] = [
    "/", "/**", "**", "*", "/a", "/a/**", "/a/*", "/a*", "/?", "/a/b", "/a/b/**", "/**/b", "/*/b",
    "/ab", "/a**", "/a/**/c",
];
const METHODS: [&str; 3] = ["GET", "POST", "PUT"];

fn condition(attribute: &'static str) -> impl Strategy<Value = Condition> {
    let patterns: &[&str] =
        if attribute == "path" { &PATTERNS } else { &["GET", "post", "P*", "*"] };
    let pattern = prop::sample::select(patterns).prop_map(str::to_owned);
    prop::collection::vec(pattern, 1..3)
        .prop_map(|patterns| Condition { attribute: attribute.to_owned(), patterns })
}

fn conditions() -> impl Strategy<Value = Vec<Condition>> {
    let path = prop::option::of(condition("path"));
    let method = prop::option::of(condition("method"));
    (path, method).prop_map(|(path, method)| path.into_iter().chain(method).collect())
}

fn spec() -> impl Strategy<Value = MatchSpec> {
    let not = conditions().prop_filter("an exclusion has conditions", |out| !out.is_empty());
    (conditions(), prop::collection::vec(not, 0..2))
        .prop_map(|(conditions, not)| MatchSpec { conditions, not })
}

fn holds(conditions: &[Condition], path: &str, method: &str) -> bool {
    conditions.iter().all(|condition| {
        condition.patterns.iter().any(|pattern| match condition.attribute.as_str() {
            "path" => Glob::path(pattern).unwrap().matches(path),
            _ => Glob::text(&pattern.to_uppercase()).unwrap().matches(method),
        })
    })
}

fn applies(spec: &MatchSpec, path: &str, method: &str) -> bool {
    holds(&spec.conditions, path, method)
        && !spec.not.iter().any(|conditions| holds(conditions, path, method))
}

#[test]
fn what_is_covered_is_matched() {
    let claims = Cell::new(0);
    let config = Config { cases: 5_000, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&(spec(), spec()), |(wide, narrow)| {
        if !Shape::new(&wide).covers(&Shape::new(&narrow)) {
            return Ok(());
        }
        claims.set(claims.get() + 1);
        for path in PATHS {
            for method in METHODS {
                let holds = applies(&wide, path, method) || !applies(&narrow, path, method);
                prop_assert!(holds, "{method} {path}: {wide:?} does not cover {narrow:?}");
            }
        }
        Ok(())
    });
    result.unwrap();
    assert!(claims.get() >= 300, "only {} pairs were claimed to be covered", claims.get());
}

#[test]
fn what_is_plainly_covered_is_seen() {
    let covers =
        |wide: &str, narrow: &str| Pattern::new("path", wide).covers(&Pattern::new("path", narrow));
    for (wide, narrow) in [
        ("/**", "/a"),
        ("/**", "/a/*/b"),
        ("**", "/a/**"),
        ("/a/**", "/a"),
        ("/a/**", "/a/**"),
        ("/a/**", "/a/b*"),
        ("/a/*", "/a/b"),
    ] {
        assert!(covers(wide, narrow), "{wide} {narrow}");
        assert!(wide == narrow || !covers(narrow, wide), "{narrow} {wide}");
    }
    for (wide, narrow) in [("/a/**", "/ab"), ("/a/**", "/a*"), ("/a/*", "/a/b/c"), ("/a", "/a/**")]
    {
        assert!(!covers(wide, narrow), "{wide} {narrow}");
    }
    let network = |text| Pattern::new("ip", text);
    assert!(network("10.0.0.0/8").covers(&network("10.1.0.0/16")));
    assert!(!network("10.1.0.0/16").covers(&network("10.0.0.0/8")));
    assert!(Pattern::new("host", "*").covers(&Pattern::new("host", "A.example")));
}

/// Exclusions count on both sides.
#[test]
fn exclusions_are_compared() {
    let condition = |attribute: &str, pattern: &str| Condition {
        attribute: attribute.to_owned(),
        patterns: vec![pattern.to_owned()],
    };
    let shape = |path: &str, not: &[&str]| {
        let not = not.iter().map(|path| vec![condition("path", path)]).collect();
        Shape::new(&MatchSpec { conditions: vec![condition("path", path)], not })
    };
    assert!(!shape("/a/**", &["/a/b"]).covers(&shape("/a/**", &[])));
    assert!(shape("/a/**", &["/a/b"]).covers(&shape("/a/**", &["/a/b", "/a/c"])));
    assert!(shape("/a/**", &["/a/b"]).covers(&shape("/a/**", &["/a/*"])));
    assert!(shape("/a/**", &["/a/b"]).covers(&shape("/a/c", &[])));
    assert!(shape("/a/**", &[]).covers(&shape("/a/**", &["/a/b"])));
}
