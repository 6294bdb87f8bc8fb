//! Tests that `cover` is right for every request over a small set of values.

use super::analysis::cover::{ComparableMatch, Pattern};
use super::analysis::cover_index::{CoverIndex, IndexedBy};
use super::analysis::view;
use super::analysis::view::LintView;
use super::{CHECKS, Findings};
use crate::match_spec::{Condition, MatchSpec};
use crate::matcher::glob::Glob;
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
        if !ComparableMatch::new(&wide).covers(&ComparableMatch::new(&narrow)) {
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

/// Exclusions of both matches are compared.
#[test]
fn exclusions_are_compared() {
    let condition = |attribute: &str, pattern: &str| Condition {
        attribute: attribute.to_owned(),
        patterns: vec![pattern.to_owned()],
    };
    let shape = |path: &str, not: &[&str]| {
        let not = not.iter().map(|path| vec![condition("path", path)]).collect();
        ComparableMatch::new(&MatchSpec { conditions: vec![condition("path", path)], not })
    };
    assert!(!shape("/a/**", &["/a/b"]).covers(&shape("/a/**", &[])));
    assert!(shape("/a/**", &["/a/b"]).covers(&shape("/a/**", &["/a/b", "/a/c"])));
    assert!(shape("/a/**", &["/a/b"]).covers(&shape("/a/**", &["/a/*"])));
    assert!(shape("/a/**", &["/a/b"]).covers(&shape("/a/c", &[])));
    assert!(shape("/a/**", &[]).covers(&shape("/a/**", &["/a/b"])));
}

/// Returns how many pairs of limits the lints of a file compare, and how many findings they have.
fn comparisons(entries: usize, entry: impl Fn(usize) -> String) -> (usize, usize) {
    let text = format!("limits:\n{}", (0..entries).map(entry).collect::<String>());
    let compiled = crate::compile(text.as_bytes()).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let shapes = view::shapes(&compiled);
    let view = LintView::new(&compiled, &shapes);
    let mut found = Vec::new();
    CHECKS.iter().for_each(|(code, check)| check(&view, &mut Findings { code, found: &mut found }));
    (view.comparisons.get(), found.len())
}

/// Limits for different requests are not compared, whichever attribute distinguishes the requests.
#[test]
fn a_limit_is_compared_with_few_others() {
    let shapes = [
        "match: {path: /pN}, key: [user]",
        "match: {path: /pN/**}, key: [user]",
        "match: {path: '/pN*'}, key: [user]",
        "match: {path: '/pN-*/**/x'}, key: [header.x-user]",
        "match: {path: /login, header.x-tenant: tN}, key: [user]",
        "match: {header.x-tenant: tN}, key: [header.x-user]",
        "match: {header.x-tenant: 'tN.*', method: GET}, key: [header.x-user]",
        "match: {ip: '2001:db8:N::/48', path: /api/**}, key: [user]",
        "match: {path: /api/**}, key: [kN]",
        "match: {path: /pN/login}, key: [header.x-user], algorithm: fixed-window",
    ];
    for shape in shapes {
        let entry = |n: usize| {
            format!("  - {{name: lN, {shape}, rate: 5/min}}\n").replace('N', &n.to_string())
        };
        let (pairs, _) = comparisons(600, entry);
        assert!(pairs <= 8 * 600, "{shape}: {pairs} pairs");
    }
}

/// If all limits apply to the same requests, each is compared with a constant number of others.
#[test]
fn the_work_of_lints_grows_with_the_limits_and_not_with_their_square() {
    let same = |n: usize| format!("  - {{name: l{n}, key: [header.k{n}, u], rate: 5/min}}\n");
    let falling = |n: usize| format!("  - {{name: l{n}, key: [u], rate: {}/min}}\n", 90_000 - n);
    let (few, _) = comparisons(800, same);
    let (many, _) = comparisons(1_600, same);
    assert!(many <= few * 5 / 2, "{few} pairs of 800 limits, {many} of 1,600");
    let (few, _) = comparisons(800, falling);
    let (many, _) = comparisons(1_600, falling);
    assert!(many <= few * 5 / 2, "{few} pairs of 800 limits, {many} of 1,600");
}

/// The index returns every match that covers.
#[test]
fn every_match_that_covers_is_a_candidate() {
    let config = Config { cases: 1_000, failure_persistence: None, ..Config::default() };
    let specs = prop::collection::vec(spec(), 1..8);
    let result = TestRunner::new(config).run(&(specs, spec()), |(wide, narrow)| {
        let (wide, narrow): (Vec<ComparableMatch>, _) =
            (wide.iter().map(ComparableMatch::new).collect(), ComparableMatch::new(&narrow));
        let places = wide.iter().enumerate().map(|(place, shape)| (place, 0, shape));
        for by in [IndexedBy::Rarest, IndexedBy::Path] {
            let index = CoverIndex::new(places.clone(), by);
            let found: Vec<usize> = index.covering(0, &narrow).collect();
            prop_assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
            for (place, shape) in wide.iter().enumerate().filter(|(_, wide)| wide.covers(&narrow)) {
                prop_assert!(found.contains(&place), "{shape:?} covers {narrow:?}");
            }
        }
        Ok(())
    });
    result.unwrap();
}
