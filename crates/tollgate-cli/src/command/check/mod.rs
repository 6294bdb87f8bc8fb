//! `tollgate check`.

mod probe;

use super::{FAILED, FILE, Stop, UNUSABLE, has_directory_entry, print};
use clap::ValueEnum;
use probe::ProbeReport;
use serde_json::{Value, json};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tollgate_policy::{Diagnostic, Severity};
use tollgate_server::config::{ConfigError, ConfigErrorKind, check_named_files, check_ratelimit};

/// Find mistakes in tollgate.yaml
///
/// Without a file, the command checks ./tollgate.yaml. Findings go to standard output, a summary to
/// standard error. The status is 1 for errors, 0 for warnings only, 2 if a file cannot be read.
#[derive(clap::Args)]
pub(crate) struct Check {
    /// The files to check; by default ./tollgate.yaml; `-` reads standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The same as FILE, for scripts that pass --config everywhere; repeatable
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,

    /// The format of findings
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    format: CheckFormat,

    /// Treat warnings as errors
    #[arg(long, value_enum, value_name = "WHAT")]
    deny: Option<Deny>,

    /// Connect to the store of each file and report its version, mode, latency, eviction, clock and
    /// missing permissions
    #[arg(long)]
    probe: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum CheckFormat {
    /// FILE:LINE:COL: error[CODE]: text, and a line of help
    Text,
    /// One array of objects
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
enum Deny {
    /// End with status 1 on warnings too
    Warnings,
}

/// The most bytes read: one more than the policy accepts, so that it refuses the file.
const BYTES_MAX: u64 = (16 << 20) + 1;

impl Check {
    pub(crate) fn run(mut self) -> Result<ExitCode, Stop> {
        self.files.append(&mut self.config);
        if self.files.is_empty() {
            if !has_directory_entry(Path::new(FILE)) {
                let why = format!("there is no ./{FILE} here; name the file to check");
                return Err(Stop::Unusable(why));
            }
            eprintln!("checking ./{FILE}");
            self.files.push(FILE.into());
        }
        self.check()
    }

    fn check(&self) -> Result<ExitCode, Stop> {
        let mut findings = Vec::new();
        let mut probed = Vec::new();
        let (mut unreadable, mut missing) = (0, 0);
        for path in &self.files {
            let file = path.display().to_string();
            match read(path) {
                Ok(bytes) => {
                    let compiled = tollgate_policy::compile(&bytes);
                    if let (true, Ok(compiled)) = (self.probe, &compiled) {
                        probed.push(ProbeReport::new(path, compiled));
                    }
                    if let Ok(compiled) = &compiled {
                        let named = check_named_files(path, compiled).into_iter();
                        findings
                            .extend(named.map(|(file, found)| (file.display().to_string(), found)));
                        match check_ratelimit(path, compiled) {
                            Ok(files) => findings.extend(files.into_iter().flat_map(by_file)),
                            Err(ConfigError {
                                kind: ConfigErrorKind::NamedFile(_, diagnostic),
                                ..
                            }) => {
                                findings.push((file.clone(), *diagnostic));
                                missing += 1;
                            }
                            Err(error) => {
                                eprintln!("tollgate: {error}");
                                unreadable += 1;
                            }
                        }
                    }
                    let found =
                        compiled.map_or_else(Vec::from, |good| tollgate_policy::lint(&good));
                    findings.extend(found.into_iter().map(|found| (file.clone(), found)));
                }
                Err(error) => {
                    eprintln!("tollgate: cannot read {file}: {error}");
                    unreadable += 1;
                }
            }
        }
        let count = |severity| findings.iter().filter(|(_, f)| f.severity == severity).count();
        let (mut errors, mut warnings) = (count(Severity::Error), count(Severity::Warning));
        errors += probed.iter().map(|report| report.errors.len()).sum::<usize>();
        warnings += probed.iter().map(|report| report.warnings.len()).sum::<usize>();
        let text = self.text(&findings, &probed);
        let files = many(self.files.len().saturating_sub(unreadable), "file");
        eprintln!("{}, {} in {files}", many(errors, "error"), many(warnings, "warning"));
        let failed = errors > 0 || (self.deny.is_some() && warnings > 0);
        let status = match (unreadable + missing, failed) {
            (1.., _) => UNUSABLE,
            (0, true) => FAILED,
            (0, false) => 0,
        };
        print(text, status)
    }

    fn text(&self, findings: &[(String, Diagnostic)], probed: &[ProbeReport]) -> String {
        match self.format {
            CheckFormat::Text => {
                let found = findings.iter().map(|(file, found)| found.render(file).to_string());
                found.chain(probed.iter().map(ProbeReport::text)).collect()
            }
            CheckFormat::Json => {
                let found = findings.iter().map(|(file, found)| row(file, found));
                let rows: Value = found.chain(probed.iter().flat_map(ProbeReport::rows)).collect();
                format!("{rows:#}\n")
            }
        }
    }
}

fn by_file(
    (file, found): (PathBuf, Vec<Diagnostic>),
) -> impl Iterator<Item = (String, Diagnostic)> {
    let file = file.display().to_string();
    found.into_iter().map(move |one| (file.clone(), one))
}

fn row(file: &str, found: &Diagnostic) -> Value {
    json!({
        "file": file,
        "line": found.line,
        "column": found.column,
        "severity": found.severity,
        "code": found.code,
        "message": found.message,
        "help": found.help,
    })
}

fn read(path: &PathBuf) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        io::stdin().lock().take(BYTES_MAX).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(path)?.take(BYTES_MAX).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
