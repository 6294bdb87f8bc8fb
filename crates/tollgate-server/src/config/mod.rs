//! From a file to what a node runs on, and what to say when that does not work.

mod load;
mod named_files;
mod ratelimit_files;
#[cfg(test)]
mod tests;

use crate::front::{admin::AccessError, resp::RespPasswordError};
use crate::storage::StorageError;
use crate::tls::TlsError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tollgate_policy::policy::InvalidPolicy;
use tollgate_policy::settings::{Front, Listener};
use tollgate_policy::{Compiled, Diagnostic};
use tollgate_tower::InvalidKeys;

pub use named_files::check_named_files;

pub(crate) use load::{KeyFile, LoadedConfig, TierFile};
pub(crate) use named_files::with_policy_position;
pub(crate) use ratelimit_files::{RatelimitFiles, WatchedRatelimitFiles};

/// The policy of a server that was given none, as a file.
pub const DEFAULT: &str = include_str!("default.yaml");

/// Where a server's policy comes from.
#[derive(Clone, Debug, Default)]
pub struct Config {
    file: Option<PathBuf>,
    listen_overrides: Vec<ListenOverride>,
}

/// A front end and where it listens, as `front=address`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOverride(Listener);

/// A configuration that nothing can run on.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is not to be had.
    Unreadable {
        /// Which one.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file says what cannot be.
    Invalid {
        /// Which one.
        file: PathBuf,
        /// All that is wrong with it.
        diagnostics: Vec<Diagnostic>,
    },
    /// Ratelimit files say what cannot be.
    Ratelimit {
        /// Which, each with all that is wrong with it.
        files: Vec<(PathBuf, Vec<Diagnostic>)>,
    },
    /// The limits do not make a policy.
    Policy {
        /// In which file.
        file: PathBuf,
        /// Why.
        error: InvalidPolicy,
    },
    /// The admin API cannot be used as the file says.
    Access {
        /// Which one.
        file: PathBuf,
        /// Why.
        error: AccessError,
    },
    /// The password of Redis clients is not where the file says.
    Password {
        /// Which one.
        file: PathBuf,
        /// Why.
        error: RespPasswordError,
    },
    /// The store cannot be used as the file says.
    Storage {
        /// Which one.
        file: PathBuf,
        /// Why.
        error: StorageError,
    },
    /// TLS cannot be spoken as the file says.
    Tls {
        /// Which one.
        file: PathBuf,
        /// Why.
        error: TlsError,
    },
    /// The keys of `jwt` cannot be used.
    Keys {
        /// The file with them.
        file: PathBuf,
        /// Why.
        error: InvalidKeys,
    },
    /// A reload would remove every limit, and the file does not say so.
    LimitsRemoved {
        /// Which file.
        file: PathBuf,
        /// How many limits are in force.
        in_force: usize,
    },
    /// A file that the policy names cannot be used.
    NamedFile {
        /// The policy.
        policy: PathBuf,
        /// The file that it names.
        file: PathBuf,
        /// Why, and where it is named.
        diagnostic: Box<Diagnostic>,
    },
}

/// The text is not `front=address`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidListen(Box<str>);

impl Config {
    /// [`DEFAULT`].
    pub fn built_in() -> Self {
        Self::default()
    }

    /// What the file says, now and whenever it changes. Files that it names are looked for beside
    /// it.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { file: Some(path.into()), listen_overrides: Vec::new() }
    }

    /// Has a front end listen there, whatever the file says.
    pub fn listen(mut self, listen: ListenOverride) -> Self {
        self.listen_overrides.retain(|other| other.0.front != listen.0.front);
        self.listen_overrides.push(listen);
        self
    }

    /// The file, unless it is [`DEFAULT`].
    pub fn path(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

/// What is wrong with the ratelimit files that a policy at `path` names, by file. A pattern that
/// matches no file is a
/// warning about the policy.
///
/// # Errors
///
/// When one of them cannot be read.
pub fn check_ratelimit(
    path: &Path,
    compiled: &Compiled,
) -> Result<Vec<(PathBuf, Vec<Diagnostic>)>, ConfigError> {
    let config = Config::file(path);
    match RatelimitFiles::load(config.folder(), compiled) {
        Ok(Some(files)) if !files.unmatched.is_empty() => Ok(vec![(path.into(), files.unmatched)]),
        Ok(_) => Ok(Vec::new()),
        Err(ConfigError::Ratelimit { files }) => Ok(files),
        Err(error) => Err(with_policy_position(&config, compiled, error)),
    }
}

impl ConfigError {
    /// Which file is to be mended.
    pub fn file(&self) -> &Path {
        match self {
            Self::Unreadable { file, .. }
            | Self::Invalid { file, .. }
            | Self::Policy { file, .. }
            | Self::Access { file, .. }
            | Self::Password { file, .. }
            | Self::Storage { file, .. }
            | Self::Tls { file, .. }
            | Self::Keys { file, .. }
            | Self::LimitsRemoved { file, .. }
            | Self::NamedFile { file, .. } => file,
            Self::Ratelimit { files } => files.first().map_or(Path::new(""), |(file, _)| file),
        }
    }

    /// Whether the file was read and something in it is to be changed.
    pub const fn is_invalid(&self) -> bool {
        !matches!(
            self,
            Self::Unreadable { .. }
                | Self::Access { .. }
                | Self::Password { .. }
                | Self::Storage { .. }
                | Self::Tls { .. }
        )
    }
}

impl fmt::Display for ConfigError {
    /// As `tollgate check` shows it: a line for each finding, and its help.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { file, error } => {
                write!(f, "cannot read {}: {error}", file.display())
            }
            Self::Invalid { file, diagnostics } => {
                let file = file.display().to_string();
                let text: String =
                    diagnostics.iter().map(|one| one.render(&file).to_string()).collect();
                f.write_str(text.trim_end())
            }
            Self::Ratelimit { files } => {
                let each =
                    files.iter().flat_map(|(file, all)| all.iter().map(move |one| (file, one)));
                let shown = |(file, one): (&PathBuf, &Diagnostic)| {
                    one.render(&file.display().to_string()).to_string()
                };
                f.write_str(each.map(shown).collect::<String>().trim_end())
            }
            Self::NamedFile { policy, diagnostic, .. } => {
                let policy = policy.display().to_string();
                f.write_str(diagnostic.render(&policy).to_string().trim_end())
            }
            Self::LimitsRemoved { file, in_force } => write!(
                f,
                "{}: the file has no `limits`, and {in_force} {} in force; to remove them all, write `limits: []`",
                file.display(),
                if *in_force == 1 { "is" } else { "are" }
            ),
            Self::Access { file, error } => write!(f, "{}: {error}", file.display()),
            Self::Password { file, error } => write!(f, "{}: {error}", file.display()),
            Self::Storage { file, error } => write!(f, "{}: {error}", file.display()),
            Self::Keys { file, error } => write!(f, "{}: {error}", file.display()),
            Self::Policy { file, error } => write!(f, "{}: {error}", file.display()),
            Self::Tls { file, error } => write!(f, "{}: {error}", file.display()),
        }
    }
}

impl std::error::Error for ConfigError {}

impl FromStr for ListenOverride {
    type Err = InvalidListen;

    fn from_str(text: &str) -> Result<Self, InvalidListen> {
        let invalid = || {
            let fronts = Front::ALL.map(Front::name).join(", ");
            let shape = "is not a front end and an address, such as http=127.0.0.1:8081";
            InvalidListen(format!("`{text}` {shape}; the front ends are {fronts}").into())
        };
        let (name, address) = text.split_once('=').ok_or_else(invalid)?;
        let front = Front::ALL.into_iter().find(|front| front.name() == name);
        let front = front.ok_or_else(invalid)?;
        let address = tollgate_policy::parse_listen(address);
        let address = address.map_err(|why| InvalidListen(why.into()))?;
        Ok(Self(Listener { front, address }))
    }
}

impl fmt::Display for InvalidListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidListen {}
