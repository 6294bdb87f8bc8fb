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
    // A command that does not read its input may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Status, standard output, standard error.
fn run(arguments: &[&str], input: &str) -> (i32, String, String) {
    let output = tollgate(arguments, input.as_bytes());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}
