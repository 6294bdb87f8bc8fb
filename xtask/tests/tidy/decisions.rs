//! Decision records have one template, stay short, and are all in the index.

use crate::tree::{self, File};

const FOLDER: &str = "docs/decisions/";
const WORDS: usize = 400;
/// A superseded record contains only the lessons.
const WORDS_SUPERSEDED: usize = 100;

#[test]
fn decisions_follow_the_template() {
    let records = records(tree::files());
    assert!(records.len() > 40, "too few decisions were found");
    tree::assert_none(&records.into_iter().flat_map(complaints).collect::<Vec<_>>());
}

#[test]
fn the_index_has_every_decision() {
    let path = format!("{FOLDER}README.md");
    let index = tree::files().iter().find(|file| file.path == path).expect("the index exists");
    tree::assert_none(&missing(&index.text, &records(tree::files())));
}

#[test]
fn links_to_decisions_lead_somewhere() {
    let records = records(tree::files());
    let known = |name: &str| records.iter().any(|file| file.path.ends_with(name));
    let mut found = Vec::new();
    for file in tree::files() {
        let lost = links(file).into_iter().filter(|name| !known(name));
        found.extend(lost.map(|name| format!("{}: no decision {name}", file.path)));
    }
    tree::assert_none(&found);
}

fn records(files: &[File]) -> Vec<&File> {
    let is_record = |file: &&File| {
        file.path.strip_prefix(FOLDER).is_some_and(|name| name.starts_with(char::is_numeric))
    };
    files.iter().filter(is_record).collect()
}

fn number(record: &File) -> &str {
    let name = record.path.strip_prefix(FOLDER).unwrap_or(&record.path);
    name.split('-').next().unwrap_or_default()
}

fn title(record: &File) -> &str {
    record.text.lines().next().and_then(|line| line.split_once(": ")).map_or("", |(_, title)| title)
}

fn complaints(record: &File) -> Vec<String> {
    let mut found = Vec::new();
    let mut complain = |message: String| found.push(format!("{}: {message}", record.path));
    let lines: Vec<&str> = record.text.lines().collect();
    let start = |at: usize| lines.get(at).copied().unwrap_or_default();
    if !start(0).starts_with(&format!("# {}: ", number(record))) {
        complain(format!("the first line is `# {}: title`", number(record)));
    }
    let status = start(2).strip_prefix("* Status: ").unwrap_or_default();
    let superseded = status.starts_with("superseded by [");
    if !superseded && !status.starts_with("accepted") {
        complain("line 3 is `* Status: accepted` or `* Status: superseded by [...](...)`".into());
    }
    if !start(3).strip_prefix("* Date: ").is_some_and(is_date) {
        complain("line 4 is `* Date: 2026-11-15`".into());
    }
    let headings: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("## ")).collect();
    if headings != ["Context", "Choice", "Consequences"] {
        complain("the headings are Context, Choice, Consequences".into());
    }
    let most = if superseded { WORDS_SUPERSEDED } else { WORDS };
    let words = words(&record.text);
    if words > most {
        complain(format!("{words} words, and {most} are allowed"));
    }
    found
}

/// Table rules and list marks are not words.
fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &&str| part.chars().all(|c| c.is_ascii_digit());
    parts.iter().all(digits) && parts.iter().map(|part| part.len()).eq([4, 2, 2])
}

/// The numbers up to the latest that the index neither links nor lists as unused.
fn missing(index: &str, records: &[&File]) -> Vec<String> {
    let latest =
        records.iter().filter_map(|file| number(file).parse().ok()).max().unwrap_or(0_usize);
    let entry = |at: usize| {
        let number = format!("{at:04}");
        match records.iter().find(|file| self::number(file) == number) {
            Some(file) => {
                let name = file.path.strip_prefix(FOLDER).unwrap_or(&file.path);
                format!("* [{number}]({name}): {}", title(file))
            }
            None => format!("* {number}: not used"),
        }
    };
    let absent = |entry: &String| !index.lines().any(|line| line.starts_with(entry));
    let entries = (1..=latest).map(entry).filter(absent);
    entries.map(|entry| format!("{FOLDER}README.md: lacks `{entry}`")).collect()
}

/// The file names of decisions that a file mentions.
fn links(file: &File) -> Vec<&str> {
    let prefix = if file.path.starts_with(FOLDER) { "](" } else { "decisions/" };
    let mut found = Vec::new();
    for (at, _) in file.text.match_indices(prefix) {
        let rest = &file.text[at + prefix.len()..];
        let of_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let stem = rest.find(|c| !of_name(c)).unwrap_or(rest.len());
        let numbered = stem > 4 && rest[..4].chars().all(|c| c.is_ascii_digit());
        if numbered && rest[stem..].starts_with(".md") {
            found.push(&rest[..stem + 3]);
        }
    }
    found
}

#[test]
fn a_record_of_another_form_is_found() {
    let good = "# 0007: Title\n\n* Status: accepted\n* Date: 2026-11-15\n\n\
        ## Context\n\na\n\n## Choice\n\nb\n\n## Consequences\n\nc\n";
    let found =
        |text: &str| complaints(&File::new(&format!("{FOLDER}0007-title.md"), text)).join("\n");
    assert_eq!(found(good), "");
    assert!(found(&good.replace("0007", "0008")).contains("first line"));
    assert!(found(&good.replace("accepted", "maybe")).contains("Status"));
    assert!(found(&good.replace("2026-11-15", "yesterday")).contains("Date"));
    assert!(found(&good.replace("Choice", "The choice")).contains("headings"));
    assert!(found(&good.replace("\nb\n", &"b ".repeat(WORDS))).contains("400 are allowed"));
    let superseded = good.replace("accepted", "superseded by [0008](0008-b.md)");
    assert_eq!(found(&superseded), "");
    assert!(
        found(&superseded.replace("\nb\n", &"b ".repeat(WORDS_SUPERSEDED))).contains("100 are")
    );
}

#[test]
fn a_gap_in_the_index_is_found() {
    let records = [File::new(&format!("{FOLDER}0002-b.md"), "# 0002: B\n")];
    let missing = |index: &str| missing(index, &records.iter().collect::<Vec<_>>()).len();
    assert_eq!(missing(""), 2);
    assert_eq!(missing("* 0001: not used\n* [0002](0002-b.md): B (superseded)\n"), 0);
    assert_eq!(missing("* 0001: not used\n* [0002](0002-b.md): Another title\n"), 1);
}

#[test]
fn a_link_is_read() {
    // Concatenated here, so that this file passes its own check.
    let text =
        ["see [a](docs/", "0001-a.md) and ", "0002-b.md, not ", "README.md"].join("decisions/");
    assert_eq!(links(&File::new("docs/a.md", &text)), ["0001-a.md", "0002-b.md"]);
    let inside = File::new(&format!("{FOLDER}0003-c.md"), "[0001](0001-a.md), [x](../b.md)");
    assert_eq!(links(&inside), ["0001-a.md"]);
}
