//! The files that the checks read.

use crate::mask;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Folders whose Rust follows the rules: shipped code, tests and chores.
const OURS: &[&str] = &["crates/", "testing/", "xtask/"];

/// A text file of the tree. Its path is relative to the workspace, with `/`.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
    /// For Rust only: the text with comments and strings blanked out.
    pub(crate) code: String,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = if path.ends_with(".rs") { mask::code_only(text) } else { String::new() };
        Self { path: path.into(), text: text.into(), code }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// A Rust file of this workspace; `bench/` and `fuzz/` are separate workspaces.
    pub(crate) fn is_ours(&self) -> bool {
        self.is_rust() && self.is_member()
    }

    /// Any file of a member of this workspace.
    pub(crate) fn is_member(&self) -> bool {
        OURS.iter().any(|folder| self.path.starts_with(folder))
    }

    /// A test, or an example, which is not shipped either.
    pub(crate) fn is_test(&self) -> bool {
        let folders = ["/tests/", "/benches/", "/examples/"];
        self.path.ends_with("/tests.rs") || folders.iter().any(|f| self.path.contains(f))
    }

    /// A Rust file of a shipped crate: no test, no chore, no harness.
    pub(crate) fn ships(&self) -> bool {
        self.is_rust() && self.path.starts_with("crates/") && !self.is_test()
    }

    /// The lines of code in which `found` holds, as `path:line: message`.
    pub(crate) fn complaints(&self, message: &str, found: impl Fn(&str) -> bool) -> Vec<String> {
        let lines = self.code.lines().enumerate().filter(|(_, line)| found(line));
        lines.map(|(at, _)| format!("{}:{}: {message}", self.path, at + 1)).collect()
    }
}

/// The workspace.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every text file of the tree: tracked, or new and not ignored.
pub(crate) fn files() -> &'static [File] {
    static FILES: OnceLock<Vec<File>> = OnceLock::new();
    FILES.get_or_init(|| {
        let output = Command::new("git")
            .current_dir(root())
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output()
            .expect("git is installed");
        assert!(output.status.success(), "the checks need a git checkout");
        let names = String::from_utf8(output.stdout).expect("paths are UTF-8");
        let read = |name: &str| Some(File::new(name, &fs::read_to_string(root().join(name)).ok()?));
        let files: Vec<File> = names.split('\0').filter_map(read).collect();
        assert!(files.iter().filter(|file| file.ships()).count() > 20, "too few files were found");
        files
    })
}

/// Fails with all complaints, not only the first.
pub(crate) fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Whether `word` occurs in `line` as a whole name.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let of_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let goes_on = word.ends_with(of_name) && after.is_some_and(of_name);
        !goes_on && !before.is_some_and(of_name)
    })
}

#[test]
fn words_are_whole() {
    assert!(has_word("let x: f64 = y", "f64"));
    assert!(!has_word("let buf64 = y", "f64"));
    assert!(!has_word("f64x2", "f64"));
    assert!(has_word("(todo!())", "todo!"));
    assert!(!has_word("not_todo!()", "todo!"));
}
