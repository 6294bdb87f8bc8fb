//! One binary for all integration tests of the crate.

mod allocations;
mod bad;
mod good;
mod lint;
mod ratelimit;
mod reference;
mod robust;

use std::path::{Path, PathBuf};

/// All `.yaml` files of a fixture folder, in order.
fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no fixtures in {}", folder.display());
    files
}

/// A file of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Compares with a committed file, or writes it when `BLESS` is set.
fn committed(path: &Path, actual: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        expected == actual,
        "{} differs; review and run again with BLESS=1.\n--- committed\n{expected}\n--- now\n{actual}",
        path.display()
    );
}
