use super::*;
use std::fs;

const GOOD: &str = "\
# Why this one.
property = \"2\"
breaks = 'the wait is too long'
file = \"crates/x.rs\"
old = '''
let wait_us = end_us - now_us;'''
new = 'let wait_us = end_us - now_us + 1;'
test = \"cargo test --package x\"
";

fn lines(text: &str) -> Vec<String> {
    text.lines().map(String::from).collect()
}

#[test]
fn a_mutant_is_read_and_applied_to_exactly_one_place() {
    let mutant = catalog::parse("wait", GOOD).unwrap();
    assert_eq!(mutant.name, "wait");
    assert_eq!(mutant.old, "let wait_us = end_us - now_us;");
    let text = "a\nlet wait_us = end_us - now_us;\nb";
    assert_eq!(mutant.apply(text).unwrap(), "a\nlet wait_us = end_us - now_us + 1;\nb");
    assert!(mutant.apply("nothing here").unwrap_err().contains("no longer contains"));
    assert!(mutant.apply(&text.repeat(2)).unwrap_err().contains("2 times"));
}

#[test]
fn files_that_say_too_little_or_too_much_are_refused() {
    let bad = [
        (GOOD.replace("property", "properties"), "lacks `property`"),
        (format!("{GOOD}note = 'x'"), "unknown field `note`"),
        (format!("{GOOD}file = 'x'"), "given twice"),
        (GOOD.replace("now_us + 1;", "now_us;"), "changes nothing"),
        (GOOD.replace("package x\"", "package x"), "not a closed string"),
        ("property".into(), "expected `key = value`"),
    ];
    for (text, expected) in bad {
        let why = catalog::parse("wait", &text).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn only_a_failed_test_kills() {
    let killed = lines("test gcra::tests::paces ... FAILED\ntest gcra::tests::waits ... ok");
    assert_eq!(judge(Some(101), &killed), Fate::Killed(vec!["gcra::tests::paces".into()]));
    let nextest = lines("        FAIL [   0.004s] (1/2) tollgate-core gcra::tests::paces");
    assert_eq!(judge(Some(100), &nextest), Fate::Killed(vec!["gcra::tests::paces".into()]));
    let example = lines("test crates/x/src/lib.rs - (line 8) ... FAILED");
    assert_eq!(judge(Some(101), &example), Fate::Killed(vec!["crates/x/src/lib.rs".into()]));
    assert_eq!(judge(Some(0), &[]), Fate::Survived);
    assert_eq!(judge(Some(124), &[]), Fate::Hung);
    assert_eq!(judge(Some(101), &[]), Fate::Invalid, "no such package");
    let broken = lines("error: could not compile `x` (lib) due to 1 previous error");
    assert_eq!(judge(Some(101), &broken), Fate::Invalid);
}

#[test]
fn every_mutant_applies_and_is_in_the_table() {
    let root = process::root();
    let mutants = catalog::load(&root.join("xtask/mutants")).unwrap();
    let table = fs::read_to_string(root.join("docs/internals/mutants.md")).unwrap();
    for mutant in &mutants {
        let text = fs::read_to_string(root.join(&mutant.file)).unwrap();
        mutant.apply(&text).unwrap();
        let row = format!("| `{}` |", mutant.name);
        assert!(table.contains(&row), "run `cargo xtask mutants`: the table lacks {row}");
    }
    assert!(!table.contains("SURVIVED") && !table.contains("INVALID"), "a mutant is alive");
    let rows = table.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, mutants.len(), "run `cargo xtask mutants`: the table has other rows");
}

#[test]
fn the_copy_follows_the_tree_and_forgets_a_mutation() {
    let folder = std::env::temp_dir().join(format!("tollgate-scratch-{}", std::process::id()));
    let scratch = Scratch::new(&process::root(), &folder).unwrap();
    let original = scratch.read("xtask/Cargo.toml").unwrap();
    scratch.write("xtask/Cargo.toml", "left by an interrupted run").unwrap();
    scratch.write("xtask/extra.rs", "left too").unwrap();
    let again = Scratch::new(&process::root(), &folder).unwrap();
    assert_eq!(again.read("xtask/Cargo.toml").unwrap(), original);
    assert!(again.read("xtask/extra.rs").is_err());
    fs::remove_dir_all(&folder).unwrap();
}
