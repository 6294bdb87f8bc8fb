//! Runs other programs, and both shows and captures their output.

use crate::Failure;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

/// The exit status of a program, and its output by lines.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) lines: Vec<String>,
}

/// Whether the output is shown or only captured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    On,
    Off,
}

/// The workspace. Cargo passes the manifest at run time; the compiled-in path is for a binary that
/// is started directly.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The target folder, beside which a chore with special flags can have its own.
pub(crate) fn target_dir() -> PathBuf {
    let root = root();
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

/// Returns `cargo` of the same toolchain, to run in the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Whether `program` is on the path. Programs are not run for this, since not all have `--version`.
pub(crate) fn is_installed(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Runs a program to its end, with an empty standard input.
pub(crate) fn run(command: &mut Command, echo: Echo) -> Result<Finished, Failure> {
    if echo == Echo::On {
        println!("+ {}", describe(command));
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| Failure::Failed(format!("cannot start {}: {why}", describe(command))))?;
    let stderr = child
        .stderr
        .take()
        .map(|pipe| thread::spawn(move || read_lines(pipe, echo, |line| eprintln!("{line}"))));
    let mut lines = match child.stdout.take() {
        Some(pipe) => read_lines(pipe, echo, |line| {
            // A closed standard output must not stop the chore.
            let _ = writeln!(std::io::stdout(), "{line}");
        }),
        None => Vec::new(),
    };
    lines.extend(stderr.and_then(|reader| reader.join().ok()).unwrap_or_default());
    let status = child
        .wait()
        .map_err(|why| Failure::Failed(format!("cannot wait for {}: {why}", describe(command))))?;
    Ok(Finished { status, lines })
}

/// Runs a program to its end and shows its output at once, including progress. `failed` is the
/// error if the program fails.
pub(crate) fn pass_through(command: &mut Command, failed: &str) -> Result<(), Failure> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::Failed(failed.into())),
        Err(why) => Err(Failure::Failed(format!("cannot start {}: {why}", describe(command)))),
    }
}

fn read_lines(pipe: impl Read, echo: Echo, show: impl Fn(&str)) -> Vec<String> {
    let mut lines = Vec::new();
    for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        if echo == Echo::On {
            show(&line);
        }
        lines.push(line);
    }
    lines
}

fn describe(command: &Command) -> String {
    let mut text = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
