//! `tollgate replay`, `compare` and `suggest` on generated logs.

mod compare;
mod formats;
mod input;
mod replay;
mod suggest;
mod traffic;

use crate::serve::process::Folder;
use serde_json::Value;
use std::process::{Command, Output, Stdio};

pub(crate) use traffic::{day, nginx};

/// A folder with logs and policies, in which commands run.
struct Bench {
    folder: Folder,
}

impl Bench {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let bench = Self { folder: Folder::new(&format!("lab-{name}")) };
        files.iter().for_each(|(name, text)| bench.write(name, text.as_bytes()));
        bench
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.0.join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.0.join(name)).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(arguments).current_dir(&self.folder.0);
        command
    }

    /// [`run`](Self::run) with this standard input, which is a file.
    fn run_with(&self, arguments: &[&str], stdin: &[u8]) -> Output {
        self.write("stdin", stdin);
        let stdin = std::fs::File::open(self.folder.0.join("stdin")).unwrap();
        self.command(arguments).stdin(stdin).output().unwrap()
    }

    /// Status, standard output, standard error.
    fn text(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.run(arguments);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    /// The JSON output of a command.
    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let (status, stdout, stderr) = self.text(&[arguments, &["--format", "json"]].concat());
        assert!(status < 2, "{stderr}");
        serde_json::from_str(&stdout).unwrap_or_else(|why| panic!("{why}: {stdout}"))
    }
}
