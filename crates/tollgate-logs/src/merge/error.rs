//! Errors of reading logs.

use crate::format::FormatError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The error for logs that cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// A file cannot be opened.
    Open(PathBuf, io::Error),
    /// No reader can be built with these options.
    Options(FormatError),
    /// No format reads the first lines.
    Unknown {
        /// The file.
        path: PathBuf,
        /// The number of the first line that is not text, and why.
        bad: Option<(u64, &'static str)>,
    },
    /// The requested format reads none of the first lines.
    WrongFormat {
        /// The file.
        path: PathBuf,
        /// The name of the format.
        format: &'static str,
        /// The first line that the format cannot read, and why.
        bad: (u64, String),
        /// The format that reads the lines.
        likely: Option<&'static str>,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Self::Options(error) => error.fmt(f),
            Self::Unknown { path, bad } => {
                if let Some((line, why)) = bad {
                    write!(f, "{}:{line}: {why}; ", path.display())?;
                } else {
                    write!(f, "{}: ", path.display())?;
                }
                f.write_str(
                    "the format of the first lines is not known; name it with --format, or describe \
                     the lines with --log-format",
                )
            }
            Self::WrongFormat { path, format, bad: (line, why), likely } => {
                write!(f, "{}:{line}: this is not {format}: {why}", path.display())?;
                match likely {
                    Some(likely) => {
                        write!(f, "; the lines look like {likely}: try --format {likely}")
                    }
                    None => write!(f, "; describe the lines with --log-format"),
                }
            }
        }
    }
}

impl std::error::Error for LogError {}
