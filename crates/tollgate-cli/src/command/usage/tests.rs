use super::read::{ReadUsage, UsageFinding};
use super::totals::{Grouping, Totals};
use super::{NAME_CHARS_MAX, Report, ReportFormat, csv_cell, parse_time, shortened};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tollgate-usage-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A stopped file of node `node` after `previous`, with one interval, and its hash.
fn file(
    folder: &Path,
    name: &str,
    node: &str,
    previous: Option<(&str, &str)>,
    rows: &str,
) -> String {
    let previous = previous.map_or("null".into(), |(file, sha256)| {
        format!("{{\"file\":\"{file}\",\"sha256\":\"{sha256}\"}}")
    });
    let head = format!(
        "{{\"tollgate_usage\":1,\"node\":\"{node}\",\"started\":\"2026-11-16T10:00:00.000000Z\",\"every\":60,\"previous\":{previous}}}\n{rows}"
    );
    let text = format!("{}{STOPPED}", sealed(&head, 1, rows.matches("given_back").count()));
    fs::write(folder.join(name), &text).unwrap();
    sha256(&text)
}

const STOPPED: &str = "{\"stopped\":\"2026-11-16T10:30:00.000000Z\"}\n";

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text with a line that ends an interval of this many rows.
fn sealed(text: &str, minute: u64, rows: usize) -> String {
    let hash = sha256(text);
    format!(
        "{text}{{\"end\":\"2026-11-16T10:{minute:02}:00.000000Z\",\"rows\":{rows},\"sha256\":\"{hash}\"}}\n"
    )
}

fn row(
    minute: u64,
    limit: &str,
    user: &str,
    admitted: u64,
    refused: u64,
    given_back: u64,
) -> String {
    format!(
        "{{\"time\":\"2026-11-16T10:{minute:02}:00.000000Z\",\"limit\":\"{limit}\",\"tier\":\"pro\",\"key\":{{\"user\":\"{user}\"}},\
         \"admitted\":{admitted},\"refused\":{refused},\"given_back\":{given_back}}}\n"
    )
}

fn read(files: &[PathBuf], by: &str) -> (Totals, ReadUsage) {
    let mut totals = Totals::new(by.parse::<Grouping>().unwrap());
    let read = ReadUsage::read(files, |time_us, row| totals.add(time_us, row)).unwrap();
    (totals, read)
}

#[test]
fn files_of_many_nodes_add_up() {
    let folder = folder("sum");
    let rows = row(0, "a", "1", 5, 1, 2) + &row(1, "b", "2", 1, 0, 0);
    let first = file(&folder, "old.jsonl", "n1", None, &rows);
    file(&folder, "new.jsonl", "n1", Some(("old.jsonl", &first)), &row(2, "a", "2", 10, 0, 0));
    file(&folder, "other.jsonl", "n2", None, &row(0, "a", "1", 1, 1, 0));
    let files = ["new.jsonl", "old.jsonl", "other.jsonl"].map(|name| folder.join(name));
    let (totals, seen) = read(&files, "user");
    let groups: Vec<_> =
        totals.groups().into_iter().map(|(name, sums)| (name, sums.used(), sums.refused)).collect();
    assert_eq!(groups, [("2", 11, 0), ("1", 4, 2)]);
    assert_eq!((seen.files, seen.nodes, seen.findings.len()), (3, 2, 0));
    let (totals, _) = read(&files, "tier");
    assert_eq!((totals.groups().len(), totals.total().used()), (1, 15));
}

#[test]
fn a_missing_a_changed_and_a_repeated_file_are_found() {
    let folder = folder("chain");
    let hash = file(&folder, "old.jsonl", "n", None, &row(0, "a", "1", 5, 0, 0));
    file(&folder, "new.jsonl", "n", Some(("old.jsonl", &hash)), "");
    let (old, new) = (folder.join("old.jsonl"), folder.join("new.jsonl"));
    assert_eq!(read(&[new.clone(), old.clone()], "limit").1.findings, []);
    let missing = UsageFinding::Missing { file: new.clone(), previous: "old.jsonl".into() };
    assert_eq!(read(std::slice::from_ref(&new), "limit").1.findings, [missing]);
    let copied = read(&[old.clone(), new.clone(), old.clone()], "limit");
    assert_eq!(
        (copied.0.total().used(), copied.1.findings),
        (5, vec![UsageFinding::Copy(old.clone())])
    );
    file(&folder, "old.jsonl", "n", None, &row(0, "a", "1", 4, 0, 0));
    let changed = UsageFinding::Changed { file: new.clone(), previous: "old.jsonl".into() };
    assert_eq!(read(&[old, new], "limit").1.findings, [changed]);
}

#[test]
fn damage_and_gaps_are_told_and_the_rest_counts() {
    let folder = folder("damage");
    let gap = "{\"gap\":{\"from\":\"a\",\"to\":\"b\",\"reason\":\"c\"}}\n";
    let rows = row(0, "a", "1", 5, 0, 0) + "{\"time\":\"x\n" + gap + &row(1, "a", "1", 1, 0, 0);
    file(&folder, "f.jsonl", "n", None, &rows);
    let (totals, seen) = read(&[folder.join("f.jsonl")], "limit");
    assert_eq!((totals.total().used(), seen.findings.len()), (6, 2));
    assert!(seen.findings.iter().all(UsageFinding::is_error));
    fs::write(folder.join("none"), "hello\n").unwrap();
    let error = ReadUsage::read(&[folder.join("none")], |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("is not a usage file"), "{error}");
}

#[test]
fn a_spreadsheet_takes_no_key_for_a_formula() {
    assert_eq!(csv_cell("=1+1"), "'=1+1");
    assert_eq!(csv_cell("a,\"b\""), "\"a,\"\"b\"\"\"");
    assert_eq!(csv_cell("a\nb"), "\"a\nb\"");
}

#[test]
fn times_are_instants_dates_or_durations() {
    assert_eq!(parse_time("1970-01-02"), Ok(86_400_000_000));
    assert_eq!(parse_time("1970-01-01T00:01:00.5Z"), Ok(60_500_000));
    assert!(parse_time("1h").is_ok());
    for wrong in ["", "yesterday", "2026-13-01", "2026-11-16T25:00:00Z", "2026-11-16T10:00:00"] {
        assert!(parse_time(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn html_and_control_characters_are_escaped_everywhere() {
    let folder = folder("escape");
    let user = "<img src=x>\\u001b[2J";
    file(&folder, "f.jsonl", "n", None, &row(0, "a", user, 5, 0, 0));
    let files = vec![folder.join("f.jsonl")];
    let (totals, seen) = read(&files, "user");
    let picture = super::plot::svg(&totals, &seen);
    assert!(picture.contains("&lt;img src=x&gt;") && !picture.contains("<img"), "{picture}");
    for format in [ReportFormat::Table, ReportFormat::Json] {
        let by: Grouping = "user".parse().unwrap();
        let report =
            Report { files: files.clone(), by, since: None, until: None, format, plot: None };
        assert!(!report.text(&totals, &seen).contains('\u{1b}'));
    }
}

#[test]
fn edited_removed_and_doubled_rows_show_without_the_next_file() {
    let folder = folder("edited");
    let header = "{\"tollgate_usage\":1,\"node\":\"n\",\"started\":\"2026-11-16T10:00:00.000000Z\",\"every\":60,\"previous\":null}\n";
    let rows = [row(0, "a", "1", 5, 0, 0), row(0, "a", "2", 6, 0, 0)];
    let first = sealed(&(header.to_owned() + &rows.concat()), 1, 2);
    let whole = sealed(&(first.clone() + &row(1, "a", "1", 7, 0, 0)), 2, 1) + STOPPED;
    let found = |text: &str| {
        let path = folder.join("f.jsonl");
        fs::write(&path, text).unwrap();
        read(&[path], "limit").1.findings
    };
    assert_eq!(found(&whole), []);
    let edited = found(&whole.replace("\"admitted\":5", "\"admitted\":4"));
    assert!(matches!(&edited[..], [UsageFinding::Edited { line: 4, .. }]), "{edited:?}");
    let removed = found(&whole.replace(&rows[0], ""));
    assert!(
        matches!(
            &removed[..],
            [
                UsageFinding::Rows { line: 3, found: 1, counted: 2, .. },
                UsageFinding::Edited { line: 3, .. }
            ]
        ),
        "{removed:?}"
    );
    let doubled = found(&whole.replace(&rows[0], &rows[0].repeat(2)));
    assert!(matches!(&doubled[0], UsageFinding::Rows { found: 3, counted: 2, .. }), "{doubled:?}");
    // Removes a whole interval.
    let without = header.to_owned() + &whole[first.len()..];
    assert!(matches!(&found(&without)[..], [UsageFinding::Edited { line: 3, .. }]));
    // A seal without a hash, among seals with one, is not the node's.
    let bare = "{\"end\":\"2026-11-16T10:03:00.000000Z\",\"rows\":0}\n";
    let bare = found(&whole.replace(STOPPED, &(bare.to_owned() + STOPPED)));
    assert!(matches!(&bare[..], [UsageFinding::Edited { line: 7, .. }]), "{bare:?}");
    // A file of an earlier version has no hashes.
    let old = whole.lines().map(|line| line.split(",\"sha256\"").next().unwrap());
    let old: String = old
        .map(|line| if line.ends_with('}') { format!("{line}\n") } else { format!("{line}}}\n") })
        .collect();
    assert_eq!(found(&old), []);
}

#[test]
fn rows_behind_the_last_seal_or_the_last_line_do_not_count() {
    let folder = folder("unsealed");
    let (path, next) = (folder.join("f.jsonl"), folder.join("next.jsonl"));
    let ghost = row(9, "a", "ghost", 1000, 0, 0);
    file(&folder, "f.jsonl", "n", None, &row(0, "a", "1", 5, 0, 0));
    let stopped = fs::read_to_string(&path).unwrap();
    let open = stopped.strip_suffix(STOPPED).unwrap().to_owned();
    let found = |text: &str, files: &[PathBuf]| {
        fs::write(&path, text).unwrap();
        let (totals, seen) = read(files, "user");
        assert_eq!(totals.total().used(), 5, "{text}");
        (seen.findings.iter().any(UsageFinding::is_error), seen.findings)
    };
    let alone = [path.clone()];
    assert_eq!(found(&stopped, &alone), (false, vec![]));
    let after = vec![UsageFinding::AfterEnd { file: path.clone(), line: 5 }];
    assert_eq!(found(&(stopped.clone() + &ghost), &alone), (true, after));
    // A seal of its own does not help a row behind the last line.
    assert!(found(&sealed(&(stopped + &ghost), 10, 1), &alone).0);
    let last_end = Some("2026-11-16T10:01:00.000000Z".into());
    let is_open = || UsageFinding::Open { file: path.clone(), last_end: last_end.clone() };
    assert_eq!(found(&open, &alone), (false, vec![is_open()]));
    let unsealed =
        |is_open| UsageFinding::Unsealed { file: path.clone(), line: 4, rows: 2, is_open };
    let text = open + &ghost + "{\"time\":\"2026-11";
    assert_eq!(found(&text, &alone), (false, vec![unsealed(true), is_open()]));
    // A file with a successor is no longer written.
    file(&folder, "next.jsonl", "n", Some(("f.jsonl", &sha256(&text))), "");
    assert_eq!(found(&text, &[path.clone(), next]), (true, vec![unsealed(false)]));
}

#[test]
fn a_long_name_does_not_make_every_line_long() {
    let name = "é".repeat(NAME_CHARS_MAX);
    assert_eq!(shortened(&name), name);
    assert_eq!(shortened(&format!("{name}x")), format!("{name}…"));
}

#[test]
fn an_attribute_that_no_row_has_is_an_error_with_the_choices() {
    let folder = folder("typo");
    file(&folder, "f.jsonl", "n", None, &row(0, "a", "1", 5, 0, 0));
    let files = [folder.join("f.jsonl")];
    assert_eq!(read(&files, "usr").0.missing_attribute().unwrap(), "limit, tier, user");
    for by in ["user", "tier", "limit"] {
        assert_eq!(read(&files, by).0.missing_attribute(), None, "{by}");
    }
}
