//! Tells the program which commit it is built from, for `tollgate --version`.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=TOLLGATE_COMMIT");
    let commit = std::env::var("TOLLGATE_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = commit.or_else(|| {
        // Outside a clone, such as in a package of the registry, there is no commit.
        let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
        println!("cargo:rerun-if-changed={log}");
        git(&["rev-parse", "HEAD"])
    });
    let short = commit.as_deref().and_then(|commit| commit.get(..12)).unwrap_or("unknown");
    println!("cargo:rustc-env=TOLLGATE_COMMIT_SHORT={short}");
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
