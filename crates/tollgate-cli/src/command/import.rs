//! `tollgate import`.

use super::lab::unreadable;
use super::{FAILED, Stop, UNUSABLE, print};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tollgate_policy::import::{Imported, limitador};

/// Convert the limits of another rate limiter to a tollgate.yaml
///
/// The policy goes to standard output. Standard error has a note for each limit that cannot be
/// converted. The status is 1 if a limit was left out, 2 if the file cannot be read.
#[derive(clap::Args)]
pub(crate) struct Import {
    #[command(subcommand)]
    from: ImportSource,
}

#[derive(clap::Subcommand)]
enum ImportSource {
    /// A limits file of Limitador
    Limitador {
        /// The file
        file: PathBuf,
    },
}

impl Import {
    pub(crate) fn run(&self) -> Result<ExitCode, Stop> {
        let ImportSource::Limitador { file } = &self.from;
        let bytes = std::fs::read(file).map_err(|error| unreadable(file, &error))?;
        match limitador(&bytes) {
            Err(error) => {
                eprint!("{}", error.render(&file.display().to_string()));
                Ok(ExitCode::from(UNUSABLE))
            }
            Ok(imported) => report(file, &imported),
        }
    }
}

fn report(file: &Path, imported: &Imported) -> Result<ExitCode, Stop> {
    let lost = imported.notes.iter().filter(|note| note.is_lost).count();
    for note in &imported.notes {
        eprintln!("{}:{}:{}: {}", file.display(), note.at.line, note.at.column, note.text);
    }
    let dropped = match imported.duplicates {
        0 => String::new(),
        1 => ", 1 duplicate dropped".to_owned(),
        more => format!(", {more} duplicates dropped"),
    };
    eprintln!("{} limits imported, {lost} left out{dropped}", imported.limits);
    print(&*imported.text, if lost > 0 { FAILED } else { 0 })
}
