//! The command as its users see it.

mod admin;
mod check;
mod choose;
mod explain;
mod faults;
mod fleet;
mod forward_auth;
mod gateway;
mod hash;
mod import;
mod lab;
mod named_files;
mod outage;
mod page;
mod probe;
mod recipes;
mod records;
mod secrets;
mod serve;
mod simulate;
mod terminal;
mod tools;
mod watch;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Runs `tollgate` with the arguments and standard input, in the folder of the policy's fixtures.
fn tollgate(arguments: &[&str], input: &[u8]) -> Output {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tollgate-policy/tests/fixtures");
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input may already have ended.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Status, standard output, standard error.
fn run(arguments: &[&str], input: &str) -> (i32, String, String) {
    let output = tollgate(arguments, input.as_bytes());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A help that cannot be written is a failure, as is every other output; a closed pipe is none.
#[test]
fn help_and_version_fail_on_a_full_disk() {
    for argument in ["--help", "--version", "-V"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        let output = command.arg(argument).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{argument}: {said}");
        assert!(said.starts_with("tollgate: cannot write: "), "{argument}: {said}");
        assert_eq!(run(&[argument], "").0, 0);
    }
    assert_eq!(run(&["--nothing"], "").0, 2);
}
