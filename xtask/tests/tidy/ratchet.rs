//! Rules that the tree does not meet everywhere yet. `xtask/tidy.ratchet` lists the exceptions and
//! their amounts. An entry that is too large also fails, so that improvements stay.

use crate::tree;
use std::fs;

/// Every check with possible exceptions.
const CHECKS: &[&str] = &[
    "algorithm-file",
    "comment-width",
    "file-length",
    "folder-files",
    "function-length",
    "lib-item",
    "type-name",
    "unsafe",
    "unused-dependency",
    "unwrap",
];

/// A finding of a check: its subject and its amount.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// A path, or a path and a name, without spaces.
    pub(crate) subject: String,
    pub(crate) amount: usize,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    check: String,
    finding: Finding,
}

/// Fails on every finding that differs from the list, and on every entry without a finding.
pub(crate) fn assert_within(check: &str, rule: &str, findings: &[Finding]) {
    assert!(CHECKS.contains(&check), "{check} is not in CHECKS");
    let list =
        fs::read_to_string(tree::root().join("xtask/tidy.ratchet")).expect("the list exists");
    let entries = parse(&list).expect("the list is well-formed");
    tree::assert_none(&compare(check, rule, findings, &entries));
}

fn compare(check: &str, rule: &str, findings: &[Finding], entries: &[Entry]) -> Vec<String> {
    let entries: Vec<&Finding> =
        entries.iter().filter(|entry| entry.check == check).map(|entry| &entry.finding).collect();
    let mut complaints = Vec::new();
    for Finding { subject, amount } in findings {
        let allowed = entries.iter().find(|entry| entry.subject == *subject);
        match allowed.map_or(0, |entry| entry.amount) {
            0 => complaints.push(format!("{subject}: {check} {amount}: {rule}")),
            most if *amount > most => {
                complaints.push(format!("{subject}: {check} grew from {most} to {amount}: {rule}"));
            }
            most if *amount < most => complaints.push(format!(
                "{subject}: {check} shrank from {most} to {amount}: lower its entry in xtask/tidy.ratchet"
            )),
            _ => {}
        }
    }
    for entry in entries {
        if !findings.iter().any(|finding| finding.subject == entry.subject) {
            complaints.push(format!(
                "{}: {check} is fine now: remove its entry from xtask/tidy.ratchet",
                entry.subject
            ));
        }
    }
    complaints
}

/// `check subject amount` on each line; `#` starts a comment line.
fn parse(list: &str) -> Result<Vec<Entry>, String> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let unreadable = || format!("cannot read `{line}`");
            let words: Vec<&str> = line.split(' ').collect();
            let [check, subject, amount] = words[..] else { return Err(unreadable()) };
            let amount = amount.parse().map_err(|_| unreadable())?;
            if !CHECKS.contains(&check) {
                return Err(format!("no check is called `{check}`"));
            }
            Ok(Entry { check: check.into(), finding: Finding { subject: subject.into(), amount } })
        })
        .collect()
}

#[test]
fn entries_must_be_needed_and_exact() {
    let entries = parse("# why\n\nfile-length a.rs 700\n").unwrap();
    let complaints = |subject: &str, amount| {
        let finding = Finding { subject: subject.into(), amount };
        compare("file-length", "too long", &[finding], &entries).join("\n")
    };
    assert_eq!(complaints("a.rs", 700), "");
    assert!(complaints("a.rs", 701).contains("grew from 700 to 701"));
    assert!(complaints("a.rs", 650).contains("lower its entry"));
    let other = complaints("b.rs", 650);
    assert!(other.contains("b.rs: file-length 650: too long"), "{other}");
    assert!(other.contains("a.rs: file-length is fine now"), "{other}");
    assert_eq!(compare("unsafe", "", &[], &entries), Vec::<String>::new(), "another check's");
}

#[test]
fn unreadable_entries_are_refused() {
    assert!(parse("file-length a.rs").is_err());
    assert!(parse("file-length a.rs many").is_err());
    assert!(parse("file-width a.rs 3").is_err());
}
