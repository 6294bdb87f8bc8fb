use super::answer::{Answers, Audit, Given, Machines, Purpose, QUESTIONS};
use super::conversation::complete;
use super::rule::{ALGORITHMS, Choice, RULES};
use super::{object, policy};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;
use tollgate_policy::{compile, lint};

fn all() -> Vec<(Given, Answers)> {
    let all = Given::default().matching();
    assert_eq!(all.len(), 4 * 2 * 2 * 2 * 2 * 3);
    all.into_iter().map(|answers| (Given::from(answers).relevant(), answers)).collect()
}

#[test]
fn every_combination_is_a_policy_without_errors_or_warnings() {
    for (given, answers) in all() {
        let text = policy::text(given, answers);
        let compiled = compile(text.as_bytes());
        let compiled = compiled.unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        assert_eq!(compiled.limits.len(), 1, "{text}");
        let warnings = lint(&compiled);
        assert!(warnings.is_empty(), "{warnings:?}\n{text}");
        assert!(text.lines().all(|line| line.len() <= 120), "{text}");
    }
}

#[test]
fn the_choice_names_six_others_with_a_reason_each() {
    for (given, answers) in all() {
        let value = object(given, answers);
        let rejected = value["rejected"].as_array().unwrap();
        let mut names: HashSet<&str> =
            rejected.iter().map(|one| one["algorithm"].as_str().unwrap()).collect();
        assert!(rejected.iter().all(|one| one["why"].as_str().unwrap().len() > 10), "{value}");
        assert_eq!(names.len(), 6, "{value}");
        assert!(names.insert(value["algorithm"].as_str().unwrap()), "{value}");
        assert_eq!(value["policy"], policy::text(given, answers));
    }
}

#[test]
fn every_algorithm_and_every_rule_is_chosen_for_somebody() {
    let choices: Vec<Choice> = Given::default().matching().into_iter().map(Choice::new).collect();
    for algorithm in ALGORITHMS {
        assert!(choices.iter().any(|choice| choice.algorithm == algorithm), "{algorithm:?}");
    }
    for rule in RULES {
        assert!(choices.iter().any(|choice| choice.why == rule.why), "{}", rule.when);
    }
}

/// The first line of the policy is a command that chooses the same policy, without answers that
/// change nothing.
#[test]
fn answers_that_change_nothing_are_left_out() {
    for (given, answers) in all() {
        assert!(given.open_questions().is_empty(), "{answers:?}");
        assert_eq!(Choice::new(given.first_match().unwrap()), Choice::new(answers), "{answers:?}");
    }
    let bill = Given {
        purpose: Some(Purpose::Bill),
        machines: Some(Machines::Many),
        audit: Some(Audit::No),
        ..Given::default()
    };
    let open: Vec<&str> =
        bill.open_questions().into_iter().map(|index| QUESTIONS[index].flag).collect();
    assert_eq!(open, ["store-failure"]);
}

fn talk(given: Given, input: &str) -> (Result<Given, String>, String) {
    let (mut given, mut out) = (given, Vec::new());
    let result = complete(&mut given, input.as_bytes(), &mut out);
    (result.map(|()| given), String::from_utf8(out).unwrap())
}

#[test]
fn answers_are_numbers_words_or_beginnings_of_words() {
    let (by_number, said) = talk(Given::default(), "1\n2\n2\n1\n1\n3\n");
    assert_eq!(said.matches('?').count(), 6, "{said}");
    let (by_word, _) = talk(Given::default(), "protect\nMany\nn\nyes\nplenty\nlo\n");
    assert_eq!(policy::command(by_number.unwrap()), policy::command(by_word.unwrap()));
    let (corrected, said) = talk(Given::default(), "x\n0\n5\n\n3\none\nno\nno\np\n");
    assert_eq!(said.matches("Type a number").count(), 4, "{said}");
    assert_eq!(corrected.unwrap().purpose, Some(Purpose::Shape));
    let (ended, _) = talk(Given::default(), "bill\n");
    assert_eq!(ended.unwrap_err(), "no answer; `--machines` answers it too");
}

/// Writes the page for readers without a terminal.
fn page() -> String {
    let mut out = String::from(PAGE_TOP);
    out.push_str("| question | flag | answers |\n| --- | --- | --- |\n");
    for question in &QUESTIONS {
        let answers: Vec<String> =
            question.words().map(|(word, meaning)| format!("`{word}`: {meaning}")).collect();
        let _ = writeln!(
            out,
            "| {} | `--{}` | {} |",
            question.text,
            question.flag,
            answers.join("<br>")
        );
    }
    out.push_str(RULES_TOP);
    for rule in &RULES {
        let _ = writeln!(out, "| {} | `{}` | {} |", rule.when, rule.algorithm.word(), rule.why);
    }
    out.push_str(EXAMPLE_TOP);
    let (example, _) = talk(Given::default(), "protect\nmany\nno\nyes\nplenty\nlocal\n");
    let example = example.unwrap();
    let policy = policy::text(example, example.first_match().unwrap());
    let _ = write!(out, "```console\n$ {}\n{policy}```\n", policy::command(example));
    out.push_str(PAGE_END);
    out
}

const PAGE_TOP: &str = "\
# Which algorithm?

To find the algorithm that fits, run `tollgate choose`. It asks at most six questions and prints a policy.

";

const RULES_TOP: &str = "
## The tree

The first row that holds decides.

| answers | algorithm | because |
| --- | --- | --- |
";

const EXAMPLE_TOP: &str = "
The other answers become settings. `machines` picks the store, `store-failure` is the limit's
[`on_store_failure`](reference.md#on_store_failure), and `audit` adds a [usage trail](reference.md#usage). With `audit` and a burst, rate and burst
[together](reference.md#what-is-exact) stay within the limit of a window. Shaped requests count when they leave the queue.

## In a script

Flags answer too. Without a terminal they must answer every question that matters; the error names the missing ones. `--format json` prints the
algorithm, its reason, the others with theirs, the answers and the policy. The policy says why no other algorithm fits:

";

const PAGE_END: &str = "
[How far each algorithm is from an exact count](accuracy.md), measured. `tollgate suggest` finds [numbers that fit your traffic](lab.md#which-limits-fit).
";

/// Writes the page with `TOLLGATE_WRITE=1 cargo test --package tollgate-cli the_page_is`.
#[test]
fn the_page_is_what_the_command_knows() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/choosing.md");
    if std::env::var_os("TOLLGATE_WRITE").is_some() {
        std::fs::write(&file, page()).unwrap();
    }
    let known = std::fs::read_to_string(file).unwrap_or_default();
    assert!(known == page(), "docs/choosing.md is old; run this with TOLLGATE_WRITE=1");
}
