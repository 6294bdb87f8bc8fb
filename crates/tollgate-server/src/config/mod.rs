//! Configuration: reads the policy and the files that it names.

mod error;
mod load;
mod named_files;
mod ratelimit_files;
mod secret;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use tollgate_policy::settings::{Front, Listener};
use tollgate_policy::{Compiled, Diagnostic};

pub use error::{ConfigError, ConfigErrorKind};
pub use named_files::check_named_files;
pub use secret::{SecretDigest, SecretError};

pub(crate) use load::{KeyFile, LoadedConfig, TierFile};
pub(crate) use named_files::with_policy_position;
pub(crate) use ratelimit_files::{RatelimitFiles, WatchedRatelimitFiles};
pub(crate) use secret::resolve as resolve_secret;

/// The policy of a server without a policy file.
pub const DEFAULT: &str = include_str!("default.yaml");

/// The source of a server's policy.
#[derive(Clone, Debug, Default)]
pub struct Config {
    file: Option<PathBuf>,
    listen_overrides: Vec<ListenOverride>,
}

/// The address of a front end, as `front=address`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOverride(Listener);

/// The text is not `front=address`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidListen(Box<str>);

impl Config {
    /// Uses [`DEFAULT`].
    pub fn built_in() -> Self {
        Self::default()
    }

    /// Uses the policy in this file, and watches the file for changes. Paths in the policy start in
    /// its folder.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { file: Some(path.into()), listen_overrides: Vec::new() }
    }

    /// Overrides the address of a front end.
    pub fn listen(mut self, listen: ListenOverride) -> Self {
        self.listen_overrides.retain(|other| other.0.front != listen.0.front);
        self.listen_overrides.push(listen);
        self
    }

    /// The policy file; `None` for [`DEFAULT`].
    pub fn path(&self) -> Option<&Path> {
        self.file.as_deref()
    }
}

/// Findings in the ratelimit files that the policy at `path` names, by file. A pattern without a
/// matching file is a warning about the policy.
///
/// # Errors
///
/// When a ratelimit file cannot be read.
pub fn check_ratelimit(
    path: &Path,
    compiled: &Compiled,
) -> Result<Vec<(PathBuf, Vec<Diagnostic>)>, ConfigError> {
    let config = Config::file(path);
    match RatelimitFiles::load(config.folder(), compiled) {
        Ok(Some(files)) if !files.unmatched.is_empty() => Ok(vec![(path.into(), files.unmatched)]),
        Ok(_) => Ok(Vec::new()),
        Err(ConfigError { kind: ConfigErrorKind::Ratelimit(files), .. }) => Ok(files),
        Err(error) => Err(with_policy_position(&config, compiled, error)),
    }
}

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
