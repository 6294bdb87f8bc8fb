//! `tollgate hash`.

use super::{Stop, print};
use clap::ValueEnum;
use serde_json::json;
use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;

/// Print the hash of an API key, for a map of tiers
///
/// A map under `tiers` may have this line in place of the key, so that the file does not reveal the
/// key. The hash is SHA-256 of the value without its line end, as `printf %s KEY | sha256sum`
/// prints it. It is the same on every node and in every run.
///
/// Without VALUE, each line of standard input is a value. A key that is typed as VALUE stays in the
/// shell's history.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Hash {
    /// The value to hash; without it, each line of standard input
    #[arg(value_name = "VALUE")]
    values: Vec<String>,

    /// The output format
    #[arg(long, value_enum, default_value_t = HashFormat::Text)]
    format: HashFormat,
}

const EXAMPLES: &str = "\
Examples:
  tollgate hash < keys.txt                hash each line of a file
  tollgate hash key-1                     sha256:be297454...
  tollgate hash --format json key-1       {\"hash\":\"sha256:be297454...\"}

Exit status: 0 done, 2 a value is empty or not UTF-8.";

#[derive(Clone, Copy, ValueEnum)]
enum HashFormat {
    /// sha256: and 64 hexadecimal digits
    Text,
    /// One object a line
    Json,
}

impl Hash {
    pub(crate) fn run(self) -> Result<ExitCode, Stop> {
        let values = self.values().map_err(Stop::Unusable)?;
        let hashes = values.iter().map(|value| tollgate_policy::hash(value));
        let lines = hashes.map(|hash| match self.format {
            HashFormat::Text => format!("{hash}\n"),
            HashFormat::Json => format!("{}\n", json!({"hash": hash})),
        });
        print(lines.collect::<String>(), 0)
    }

    /// Returns the values, and refuses empty ones.
    fn values(&self) -> Result<Vec<String>, String> {
        let values = if self.values.is_empty() { lines()? } else { self.values.clone() };
        if values.is_empty() {
            return Err("standard input is empty; give a value".to_owned());
        }
        if let Some(place) = values.iter().position(String::is_empty) {
            if !self.values.is_empty() {
                return Err("an empty value has no hash".to_owned());
            }
            return Err(format!("line {} of standard input is empty; remove it", place + 1));
        }
        Ok(values)
    }
}

/// Reads the lines of standard input, without their ends.
fn lines() -> Result<Vec<String>, String> {
    let stdin = io::stdin().lock();
    if stdin.is_terminal() {
        eprintln!("type a value and press Enter, then Ctrl-D");
    }
    let lines: io::Result<Vec<String>> = stdin.lines().collect();
    lines.map_err(|error| format!("cannot read standard input: {error}"))
}
