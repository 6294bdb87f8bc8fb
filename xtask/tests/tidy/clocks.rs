//! Time is an argument: only one file reads a clock.

use crate::tree::{self, File};

/// The file with the one clock.
const CLOCK: &str = "crates/tollgate-store/src/raw/clock.rs";

const READS: &[&str] = &["Instant::now", "SystemTime::now", "UNIX_EPOCH.elapsed"];

#[test]
fn one_file_reads_the_clock() {
    tree::assert_none(&tree::files().iter().flat_map(complaints).collect::<Vec<_>>());
}

/// Tests and chores may measure time, and so may the progress line of long commands.
fn complaints(file: &File) -> Vec<String> {
    let shows_progress =
        file.path.starts_with("crates/tollgate-cli/src/") && file.path.contains("progress");
    if !file.ships() || file.path == CLOCK || shows_progress {
        return Vec::new();
    }
    let message = format!("take the time as an argument; only {CLOCK} reads a clock");
    file.complaints(&message, |line| {
        let line: String = line.split_whitespace().collect();
        READS.iter().any(|read| line.contains(read))
    })
}

#[test]
fn an_ambient_clock_is_found() {
    let found = |path, text| complaints(&File::new(path, text)).len();
    let read = "let now = std::time::Instant::now();";
    assert_eq!(found("crates/tollgate-core/src/a.rs", read), 1);
    assert_eq!(found("crates/tollgate/src/a.rs", "SystemTime::now()"), 1);
    assert_eq!(found("crates/tollgate-cli/src/main.rs", read), 1);
    assert_eq!(found("crates/tollgate-cli/src/simulate/progress.rs", read), 0);
    assert_eq!(found("crates/tollgate-store/tests/it/stress.rs", read), 0);
    assert_eq!(found(CLOCK, read), 0);
}
