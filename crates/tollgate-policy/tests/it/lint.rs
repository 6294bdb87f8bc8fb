//! Every lint has a fixture that fires, with the exact output beside it, and a fixture that does
//! not. It also has a section in `docs/lints.md`.

mod shadowed;

use super::{committed, fixtures, repository};
use std::collections::BTreeSet;
use std::path::Path;
use tollgate_policy::{Diagnostic, LINTS, Severity, compile, lint};

fn linted(path: &Path) -> Vec<Diagnostic> {
    let bytes = std::fs::read(path).unwrap();
    lint(&compile(&bytes).unwrap_or_else(|errors| panic!("{}: {errors:#?}", path.display())))
}

/// The findings of a text, as code and line.
fn found(text: &str) -> Vec<(&'static str, u32)> {
    let compiled = compile(text.as_bytes()).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"));
    lint(&compiled).iter().map(|warning| (warning.code, warning.line)).collect()
}

/// The fixtures of lints as (code, whether it fires, path).
fn cases() -> Vec<(String, bool, std::path::PathBuf)> {
    let case = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let (code, rest) = name.split_once('-').unwrap();
        let fires = rest.starts_with("fires");
        assert!(fires || rest.starts_with("quiet"), "{name} is neither fires nor quiet");
        (code.to_owned(), fires, path)
    };
    fixtures("lint").into_iter().map(case).collect()
}

#[test]
fn lints_fire_where_they_should_and_say_why() {
    for (code, _, path) in cases().into_iter().filter(|(_, fires, _)| *fires) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let findings = linted(&path);
        assert!(findings.iter().any(|warning| warning.code == code), "{name}: {findings:#?}");
        for warning in &findings {
            assert_eq!(warning.severity, Severity::Warning, "{name}");
            assert!(!warning.help.is_empty(), "{name}: no help for {}", warning.code);
        }
        let shown: String = findings.iter().map(|found| found.render(name).to_string()).collect();
        committed(&path.with_extension("txt"), &shown);
    }
}

#[test]
fn lints_are_quiet_where_they_should_be() {
    for (_, _, path) in cases().into_iter().filter(|(_, fires, _)| !*fires) {
        let findings = linted(&path);
        assert!(findings.is_empty(), "{}: {findings:#?}", path.display());
    }
}

#[test]
fn every_lint_has_both_files() {
    let known: BTreeSet<String> = LINTS.iter().map(|lint| lint.code.to_owned()).collect();
    for wanted in [true, false] {
        let shown: BTreeSet<String> =
            cases().into_iter().filter(|case| case.1 == wanted).map(|case| case.0).collect();
        assert_eq!(shown, known, "fixtures (fires: {wanted}) on the left, lints on the right");
    }
}

#[test]
fn codes_follow_each_other_and_say_something() {
    for (number, lint) in (101..).zip(LINTS) {
        assert_eq!(lint.code, format!("TG{number}"));
        assert!(!lint.title.is_empty() && lint.explanation.ends_with('.'), "{}", lint.code);
    }
}

#[test]
fn every_lint_is_documented() {
    let page = std::fs::read_to_string(repository("docs/lints.md")).unwrap();
    for lint in LINTS {
        let heading = format!("\n## {}: {}\n\n{}", lint.code, lint.title, lint.explanation);
        assert!(page.contains(&heading), "docs/lints.md lacks\n{heading}");
    }
}

/// Every section shows a bad example and its fix, so that the page stays correct.
#[test]
fn the_examples_of_the_page_are_as_it_says() {
    let page = std::fs::read_to_string(repository("docs/lints.md")).unwrap();
    for lint in LINTS {
        let start = page.find(&format!("\n## {}:", lint.code)).unwrap();
        let section = &page[start + 1..];
        let section = &section[..section.find("\n## ").unwrap_or(section.len())];
        let changes: Vec<&str> = section
            .split("```diff\n")
            .skip(1)
            .map(|rest| rest.split("```").next().unwrap())
            .collect();
        let [change] = changes[..] else { panic!("{}: {changes:#?}", lint.code) };
        let without = |sign: char| -> String {
            let lines = change.lines().filter(|line| !line.starts_with(sign));
            lines.map(|line| format!("{}\n", &line[1..])).collect()
        };
        let (bad, good) = (without('+'), without('-'));
        assert!(found(&bad).iter().any(|(code, _)| *code == lint.code), "{}: {bad}", lint.code);
        assert_eq!(found(&good), [], "{}: {good}", lint.code);
    }
}

/// Readers copy the policies of the README and of all other pages. So each is valid, and passes
/// `check --deny warnings`. Where a lint would fire on purpose, the policy has `lint.allow`.
#[test]
fn the_examples_of_the_documentation_deserve_no_warning() {
    let mut pages = vec![repository("README.md")];
    let mut folders = vec![repository("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|name| name.to_str()) {
                Some("md" | "yaml") if !path.ends_with("lints.md") => pages.push(path),
                _ if path.is_dir() => folders.push(path),
                _ => {}
            }
        }
    }
    let (mut count, mut found) = (0, String::new());
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let blocks = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let whole = page.extension().is_some_and(|name| name == "yaml").then_some(&*text);
        for example in blocks.chain(whole) {
            if !example.lines().any(|line| line.starts_with("limits:")) {
                continue;
            }
            count += 1;
            let at = page.display().to_string();
            let compiled = compile(example.as_bytes());
            let findings = compiled.map_or_else(Vec::from, |compiled| lint(&compiled));
            for finding in &findings {
                found.push_str(&format!("{}{example}", finding.render(&at)));
            }
        }
    }
    assert!(found.is_empty(), "{found}");
    assert!(count > 12, "only {count} examples were found");
}

#[test]
fn the_example_of_the_design_deserves_these() {
    let design = fixtures("good").into_iter().find(|path| path.ends_with("design.yaml")).unwrap();
    let text = std::fs::read_to_string(design).unwrap();
    // `user`, `api_key` and the plan of the tier come from headers that clients send.
    assert_eq!(found(&text), [("TG107", 17), ("TG107", 18), ("TG108", 22)]);
    let allowed = text.replace("lint: {allow: []}", "lint: {allow: [TG107]}");
    assert_eq!(found(&allowed), [("TG108", 22)]);
}

#[test]
fn an_ordinary_file_is_quiet() {
    let two = "
limits:
  - {name: per-user, match: {path: /api/**}, key: [user], rate: 100/min}
  - {name: spike, match: {path: /api/**}, key: [user], algorithm: token-bucket, rate: 5/s, burst: 3}
";
    assert_eq!(found(two), []);
    assert_eq!(found(""), []);
}

#[test]
fn an_accepted_lint_is_silent_and_the_others_are_not() {
    let file = |allow: &str| {
        format!(
            "lint: {{allow: [{allow}]}}\nlimits: [{{name: a, key: [ip, path], rate: 5/s}}, \
             {{name: b, key: [ip], rate: 5/min, algorithm: fixed-window, match: {{host: a}}}}]"
        )
    };
    assert_eq!(found(&file("")), [("TG114", 2), ("TG101", 2)]);
    assert_eq!(found(&file("TG114")), [("TG101", 2)]);
    assert_eq!(found(&file("TG101, TG114")), []);
}

/// Each limit is compared only with limits at or above its own paths. Comparing all pairs would
/// take minutes.
#[test]
fn many_limits_are_linted_quickly() {
    let entry = |n: usize| {
        let (path, key) = (format!("/p{n}/login"), "[[ip], [ip, username]]");
        format!("  - {{name: l{n}, match: {{path: {path}}}, keys: {key}, rate: 5/s}}\n")
    };
    let file = format!("limits:\n{}", (0..2_000).map(entry).collect::<String>());
    let findings = found(&file);
    assert_eq!(findings.iter().filter(|(code, _)| *code == "TG104").count(), 2_000);
}
