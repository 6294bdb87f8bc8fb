use super::*;
use crate::time::rfc3339;
use serde_json::json;
use std::fs::OpenOptions;

fn entry(what: &str) -> AuditEntry<'_> {
    AuditEntry {
        time: rfc3339(1_700_000_000_000_250),
        who: AuditActor { peer: "127.0.0.1:5000".into(), token: "sha256:0011223344".into() },
        what,
        target: json!({"limit": "a\nb"}),
        before: json!({"mode": "enforce"}),
        after: json!({"mode": "off"}),
        error: None,
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tollgate-audit-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn instants_follow_the_calendar() {
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00"),
        (951_782_400, "2000-02-29T00:00:00"),
        (951_868_800, "2000-03-01T00:00:00"),
        (1_709_164_799, "2024-02-28T23:59:59"),
        (1_709_251_199, "2024-02-29T23:59:59"),
        (1_735_689_599, "2024-12-31T23:59:59"),
        (1_735_689_600, "2025-01-01T00:00:00"),
        (4_107_542_400, "2100-03-01T00:00:00"),
        (9_007_199_254, "2255-06-05T23:47:34"),
    ] {
        assert_eq!(rfc3339(seconds * 1_000_000), format!("{text}.000000Z"));
    }
    assert_eq!(rfc3339(1_700_000_000_000_250), "2023-11-14T22:13:20.000250Z");
}

#[test]
fn each_entry_is_a_line_that_is_added() {
    let folder = folder("lines");
    let path = folder.join("audit.jsonl");
    let audit = AuditLog::file(&path).unwrap();
    audit.write(&entry("mode")).unwrap();
    // A rotation moved the file: the next line goes to a new file.
    std::fs::rename(&path, folder.join("audit.jsonl.1")).unwrap();
    audit.write(&entry("reset")).unwrap();
    audit.write(&AuditEntry { error: Some("no".into()), ..entry("reset") }).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let first = read("audit.jsonl.1");
    assert_eq!(
        first,
        r#"{"time":"2023-11-14T22:13:20.000250Z","who":{"peer":"127.0.0.1:5000","token":"sha256:0011223344"},"what":"mode","target":{"limit":"a\nb"},"before":{"mode":"enforce"},"after":{"mode":"off"}}"#
            .to_owned() + "\n"
    );
    let rest = read("audit.jsonl");
    let lines: Vec<Value> = rest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["error"], &lines[1]["error"]), (&Value::Null, &json!("no")));
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn a_new_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("rights");
    let path = folder.join("audit.jsonl");
    AuditLog::file(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_that_cannot_be_written_says_which_and_what_to_do() {
    let folder = folder("missing");
    let path = folder.join("no").join("audit.jsonl");
    let error = AuditLog::file(&path).unwrap_err().to_string();
    assert!(
        error.contains(&*path.to_string_lossy()) && error.contains("admin.audit.file"),
        "{error}"
    );
    // The disk fills up after the start.
    let full = AuditLog::File("/dev/full".into());
    if Path::new("/dev/full").exists() {
        assert!(full.write(&entry("mode")).is_err());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_line_that_was_cut_off_is_not_continued() {
    let folder = folder("cut");
    let path = folder.join("audit.jsonl");
    std::fs::write(&path, "{\"time\":\"2023-11-").unwrap();
    let audit = AuditLog::file(&path).unwrap();
    audit.write(&entry("mode")).unwrap();
    audit.write(&entry("reset")).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).count();
    assert_eq!((text.lines().count(), whole), (3, 2), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn a_pipe_that_nobody_reads_fails_and_blocks_nobody() {
    use std::os::unix::fs::OpenOptionsExt;
    let path = folder("pipe").join("audit");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    assert!(AuditLog::file(&path).is_err(), "the pipe has no reader");
    let mut reader = OpenOptions::new();
    let reader = reader.read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
    let audit = AuditLog::file(&path).unwrap();
    let lines = (0..100_000).take_while(|_| audit.write(&entry("mode")).is_ok()).count();
    assert!((1..100_000).contains(&lines), "{lines} lines until the pipe was full");
    drop(reader);
}
