//! `compat: envoy` against an independent model of the original: the rule that a descriptor finds,
//! the counts, and the responses. The model has our deliberate differences too, and names them.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use std::collections::HashMap;

/// A descriptor of the file.
#[derive(Default)]
struct Line {
    key: &'static str,
    /// A text with a star is a pattern.
    value: &'static str,
    /// Requests and seconds. `None` is no limit; zero seconds are unlimited.
    limit: Option<(u64, u64)>,
    name: &'static str,
    replaces: &'static str,
    shadow: bool,
    quota: bool,
    share: bool,
    below: Vec<Line>,
}

const UNITS: [(&str, u64); 7] = [
    ("second", 1),
    ("minute", 60),
    ("hour", 3_600),
    ("day", 86_400),
    ("week", 604_800),
    ("month", 2_592_000),
    ("year", 31_536_000),
];

fn line(key: &'static str, value: &'static str, limit: (u64, u64)) -> Line {
    Line { key, value, limit: Some(limit), ..Line::default() }
}

/// A file with every kind of rule.
fn file() -> Vec<Line> {
    let user = Line { replaces: "free", ..line("user", "", (4, 60)) };
    vec![
        Line {
            name: "free",
            below: vec![user, line("user", "root", (0, 0))],
            ..line("plan", "free", (5, 604_800))
        },
        line("plan", "pro*", (3, 2_592_000)),
        line("plan", "p*o", (2, 31_536_000)),
        line("path", "/a/b", (2, 3_600)),
        Line { share: true, ..line("path", "/a/*", (3, 86_400)) },
        line("path", "", (6, 1)),
        Line { shadow: true, ..line("seen", "", (1, 60)) },
        Line { quota: true, ..line("quota", "one", (2, 60)) },
        Line { quota: true, ..line("quota", "two", (4, 60)) },
        line("none", "", (0, 60)),
        Line { key: "group", below: vec![line("user", "", (1, 60))], ..Line::default() },
    ]
}

fn yaml(lines: &[Line], indent: usize) -> String {
    let mut out = String::new();
    for line in lines {
        let space = " ".repeat(indent);
        out += &format!("{space}- key: {}\n", line.key);
        if !line.value.is_empty() {
            out += &format!("{space}  value: '{}'\n", line.value);
        }
        for (name, on) in [
            ("shadow_mode", line.shadow),
            ("quota_mode", line.quota),
            ("share_threshold", line.share),
        ] {
            out += &format!("{space}  {name}: {on}\n");
        }
        match line.limit {
            None => {}
            Some((_, 0)) => out += &format!("{space}  rate_limit: {{unlimited: true}}\n"),
            Some((requests, seconds)) => {
                let unit = UNITS.iter().find(|unit| unit.1 == seconds).unwrap().0;
                let name = if line.name.is_empty() { "" } else { ", name: free" };
                let replaces =
                    if line.replaces.is_empty() { "" } else { ", replaces: [{name: free}]" };
                out += &format!(
                    "{space}  rate_limit: {{unit: {unit}, requests_per_unit: {requests}{name}{replaces}}}\n"
                );
            }
        }
        if !line.below.is_empty() {
            out += &format!("{space}  descriptors:\n{}", yaml(&line.below, indent + 4));
        }
    }
    out
}

/// Matches a pattern in which a star is any text.
fn fits(pattern: &[u8], value: &[u8]) -> bool {
    match pattern.split_first() {
        None => value.is_empty(),
        Some((b'*', rest)) => (0..=value.len()).any(|from| fits(rest, &value[from..])),
        Some((first, rest)) => value.first() == Some(first) && fits(rest, &value[1..]),
    }
}

/// The limit at the end of a descriptor's path, and the key of its count.
fn find<'a>(mut lines: &'a [Line], entries: &[Entry]) -> Option<(&'a Line, String)> {
    let mut count = String::new();
    let (mut at, mut found) = (0, None);
    for entry in entries {
        let of_key = || lines.iter().filter(|line| line.key == entry.key);
        let exact = of_key().find(|line| line.value == entry.value);
        let wild = || {
            let value = entry.value.as_bytes();
            of_key().find(|line| line.value.contains('*') && fits(line.value.as_bytes(), value))
        };
        let line = exact.or_else(wild).or_else(|| of_key().find(|line| line.value.is_empty()))?;
        let value = if line.share { line.value } else { &*entry.value };
        count += &format!("{}_{value}_", entry.key);
        (lines, at, found) = (&line.below, at + 1, Some(line));
    }
    let line = found.filter(|line| at == entries.len() && line.limit.is_some())?;
    Some((line, count))
}

/// The original's Redis: one counter for each key and window.
#[derive(Default)]
struct Model(HashMap<(String, u64), u64>);

/// The code, the limit, the remaining units and the seconds until the reset.
type Said = (bool, Option<u64>, u64, u64);

impl Model {
    fn ask(&mut self, lines: &[Line], request: &RateLimitRequest, now_s: u64) -> (bool, Vec<Said>) {
        let all: Vec<_> = request.descriptors.iter().map(|one| find(lines, &one.entries)).collect();
        let replaces: Vec<_> = all.iter().flatten().map(|found| found.0.replaces).collect();
        let counted = |place: usize| {
            let (line, count) = all[place].as_ref()?;
            let replaced = !line.name.is_empty() && replaces.contains(&line.name);
            let (requests, seconds) = line.limit.filter(|limit| limit.1 > 0 && !replaced)?;
            let window = now_s / seconds * seconds;
            Some((*line, (count.clone(), window), requests, seconds - now_s % seconds))
        };
        let hits = |one: &RateLimitDescriptor| {
            one.hits_addend.map_or(u64::from(request.hits_addend.max(1)), |hits| hits.value)
        };
        let mut after = vec![0; all.len()];
        // All descriptors add before any is checked. In the original, two equal descriptors add one
        // after the other; here they add together.
        for refunds in [false, true] {
            let these = || {
                let all = request.descriptors.iter().enumerate();
                all.filter(|(_, one)| one.is_negative_hits == refunds)
                    .filter_map(|(place, one)| Some((place, one, counted(place)?.1)))
            };
            for (_, one, key) in these() {
                let count = self.0.entry(key).or_default();
                *count = match refunds {
                    false => *count + hits(one),
                    // The original has no refunds; here a refund stops at zero.
                    true => count.saturating_sub(hits(one)),
                };
            }
            these().for_each(|(place, _, key)| after[place] = self.0[&key]);
        }
        let said = |place: usize| {
            let Some((line, _, requests, reset)) = counted(place) else {
                let unlimited =
                    all[place].as_ref().is_some_and(|found| found.0.limit == Some((0, 0)));
                return (true, None, if unlimited { u64::from(u32::MAX) } else { 0 }, 0);
            };
            let after = after[place];
            let refunds = request.descriptors[place].is_negative_hits;
            let over = after > requests && !line.shadow && !refunds;
            (!over, Some(requests), requests.saturating_sub(after), reset)
        };
        let statuses: Vec<Said> = (0..all.len()).map(said).collect();
        let is_quota = |place: &usize| counted(*place).is_some_and(|found| found.0.quota);
        let (quotas, others): (Vec<_>, Vec<_>) = (0..all.len()).partition(is_quota);
        let over = others.iter().any(|place| !statuses[*place].0)
            || (!quotas.is_empty() && quotas.iter().all(|place| !statuses[*place].0));
        (!over, statuses)
    }
}

fn descriptors() -> impl Strategy<Value = RateLimitDescriptor> {
    let paths: Vec<&[(&str, &str)]> = vec![
        &[("plan", "free")],
        &[("plan", "free"), ("user", "ann")],
        &[("plan", "free"), ("user", "bob")],
        &[("plan", "free"), ("user", "root")],
        &[("plan", "free"), ("user", "ann"), ("more", "x")],
        &[("plan", "pro")],
        &[("plan", "pro-2")],
        &[("plan", "polo")],
        &[("plan", "")],
        &[("path", "/a/b")],
        &[("path", "/a/c")],
        &[("path", "/a/d")],
        &[("path", "/e")],
        &[("path", "")],
        &[("seen", "x")],
        &[("quota", "one")],
        &[("quota", "two")],
        &[("none", "x")],
        &[("group", "g")],
        &[("group", "g"), ("user", "ann")],
        &[("user", "ann")],
        &[("other", "x")],
    ];
    let hits = prop_oneof![3 => Just(None), 2 => (0..4_u64).prop_map(Some)];
    (prop::sample::select(paths), hits, prop::bool::weighted(0.1)).prop_map(
        |(path, hits, is_negative_hits)| RateLimitDescriptor {
            hits_addend: hits.map(|value| UInt64Value { value }),
            is_negative_hits,
            ..descriptor(path)
        },
    )
}

fn shown(response: &RateLimitResponse) -> (bool, Vec<Said>) {
    let one = |status: &DescriptorStatus| {
        let limit = status.current_limit.as_ref().map(|limit| limit.requests_per_unit.into());
        let reset = status.duration_until_reset.map_or(0, |left| left.seconds.cast_unsigned());
        (status.code == OK, limit, status.limit_remaining.into(), reset)
    };
    (response.overall_code == OK, response.statuses.iter().map(one).collect())
}

#[test]
fn compat_envoy_counts_as_a_model_of_the_original() {
    let lines = file();
    let text = format!("domain: edge\ndescriptors:\n{}", yaml(&lines, 2));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let steps = prop_oneof![4 => Just(0), 4 => 0..40_000_000_u64, 1 => 0..900_000_000_000_u64];
    let asked = (prop::collection::vec(descriptors(), 1..5), 0..3_u32, steps);
    let cases = Cases { cases: 96, failure_persistence: None, ..Cases::default() };
    TestRunner::new(cases)
        .run(&prop::collection::vec(asked, 1..40), |asked| {
            let node = Node::start("envoy: {configs: edge.yaml}", &[("edge.yaml", &text)]);
            let service = RateLimitService::new(node.running.node().clone());
            let mut model = Model::default();
            let mut now_us = node.running.node().clock.now_us();
            for (descriptors, hits_addend, step_us) in asked {
                now_us += step_us;
                let request = RateLimitRequest { hits_addend, ..request("edge", descriptors) };
                let expected = model.ask(&lines, &request, now_us / 1_000_000);
                let decided = decide(&service, &request, CallContext::default(), now_us);
                let response = runtime.block_on(decided);
                prop_assert_eq!(shown(&response), expected, "{:?}", request);
            }
            Ok(())
        })
        .unwrap();
}
