//! Loads a [`Config`].

use super::ratelimit_files::RatelimitFiles;
use super::{
    Config, ConfigError, ConfigErrorKind, DEFAULT, SecretDigest, resolve_secret,
    with_policy_position,
};
use crate::front::admin::Access;
use crate::reload::poll::read_capped;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tollgate::engine::GateSetup;
use tollgate_observe::audit::AuditLog;
use tollgate_policy::settings::{Front, Jwt, Secret, Settings, TierSource};
use tollgate_policy::{Compiled, TierMap, TierRules};
use tollgate_tower::Verifier;

/// A valid configuration.
#[derive(Clone, Debug)]
pub(crate) struct LoadedConfig {
    /// The bytes of the policy.
    pub(crate) bytes: Vec<u8>,
    pub(crate) compiled: Compiled,
    pub(crate) tiers: Option<TierFile>,
    pub(crate) ratelimit: Option<RatelimitFiles>,
    /// The keys that verify tokens.
    pub(crate) keys: Option<KeyFile>,
}

/// The content of a file of keys.
#[derive(Clone, Debug)]
pub(crate) struct KeyFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) verifier: Arc<Verifier>,
}

/// The content of a tier file.
#[derive(Clone, Debug)]
pub(crate) struct TierFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) map: TierMap,
}

impl Config {
    /// The name of the file, for messages.
    pub(crate) fn name(&self) -> PathBuf {
        self.file.clone().unwrap_or_else(|| "built-in".into())
    }

    /// The bytes of the policy.
    pub(crate) fn read(&self) -> Result<Vec<u8>, ConfigError> {
        match &self.file {
            None => Ok(DEFAULT.into()),
            Some(file) => read(file),
        }
    }

    /// Loads the configuration again. Refuses a pipe, which was read to its end and is empty now.
    pub(crate) fn load_regular(&self) -> Result<LoadedConfig, ConfigError> {
        if let Some(file) = &self.file {
            require_regular(file)?;
        }
        self.load()
    }

    /// Loads the policy and the files that it names.
    pub(crate) fn load(&self) -> Result<LoadedConfig, ConfigError> {
        self.parse(self.read()?)
    }

    /// Loads a policy from bytes, and the files that it names.
    pub(crate) fn parse(&self, bytes: Vec<u8>) -> Result<LoadedConfig, ConfigError> {
        let mut compiled = tollgate_policy::compile(&bytes)
            .map_err(|found| ConfigErrorKind::Invalid(found.into()).of(self.name()))?;
        let listeners = &mut compiled.settings.listeners;
        for listen in &self.listen_overrides {
            match listeners.iter_mut().find(|listener| listener.front == listen.0.front) {
                Some(listener) => *listener = listen.0.clone(),
                None => listeners.push(listen.0.clone()),
            }
        }
        let located = |error| with_policy_position(self, &compiled, error);
        let tiers = self.tier_path(&compiled.settings);
        let rules = TierRules::of(&compiled);
        let tiers = tiers.map(|path| TierFile::new(&path, read_regular(&path)?, &rules));
        let tiers = tiers.transpose().map_err(located)?;
        let keys = compiled.settings.jwt.as_ref().map(|jwt| {
            let path = self.resolve_path(&jwt.keys);
            KeyFile::new(&path, jwt, read_regular(&path)?)
        });
        let keys = keys.transpose().map_err(located)?;
        let ratelimit = RatelimitFiles::load(self.folder(), &compiled).map_err(located)?;
        Ok(LoadedConfig { bytes, compiled, tiers, keys, ratelimit })
    }

    /// The folder in which the policy's relative paths start.
    pub(crate) fn folder(&self) -> &Path {
        self.path().and_then(Path::parent).unwrap_or(Path::new(""))
    }

    /// The access to the admin API under these settings.
    pub(crate) fn access(&self, settings: &Settings) -> Result<Access, ConfigError> {
        let access = Access::new(settings, |name| std::env::var_os(name));
        access.map_err(|error| error.of(self.name()))
    }

    /// The audit log under these settings.
    pub(crate) fn audit_log(&self, settings: &Settings) -> Result<AuditLog, ConfigError> {
        let audit = AuditLog::of(settings, self.folder());
        audit.map_err(|error| ConfigErrorKind::Audit(error).of(self.name()))
    }

    /// The password of Redis clients under these settings; `None` if no Redis clients are served.
    pub(crate) fn password(
        &self,
        settings: &Settings,
    ) -> Result<Option<SecretDigest>, ConfigError> {
        let serves = settings.listeners.iter().any(|one| one.front == Front::Resp);
        let secret = settings.resp_password.as_ref().filter(|_| serves);
        let password = self.secret(secret, "resp.password")?;
        Ok(password.map(|password| SecretDigest::new(password.as_bytes())))
    }

    /// The secret that hashes keys for operators under these settings.
    pub(crate) fn keys_secret(&self, settings: &Settings) -> Result<Option<String>, ConfigError> {
        self.secret(settings.keys_secret.as_ref(), "keys_secret")
    }

    fn secret(
        &self,
        secret: Option<&Secret>,
        field: &'static str,
    ) -> Result<Option<String>, ConfigError> {
        let secret =
            secret.map(|secret| resolve_secret(secret, field, |name| std::env::var_os(name)));
        secret.transpose().map_err(|error| ConfigErrorKind::Secret(error).of(self.name()))
    }

    /// The path of the tier file.
    fn tier_path(&self, settings: &Settings) -> Option<PathBuf> {
        match &settings.tiers.source {
            Some(TierSource::File { path, .. }) => Some(self.resolve_path(path)),
            _ => None,
        }
    }

    /// Resolves a path in the policy.
    fn resolve_path(&self, name: &str) -> PathBuf {
        match self.path() {
            Some(file) => file.with_file_name(name),
            None => PathBuf::from(name),
        }
    }
}

impl LoadedConfig {
    pub(crate) fn setup(&self) -> GateSetup {
        let mut setup = GateSetup::of(&self.compiled);
        if let Some(ratelimit) = &self.ratelimit {
            setup = setup.with_envoy(ratelimit.configs.clone());
        }
        if let Some(tiers) = &self.tiers {
            setup = setup.with_tiers(tiers.map.clone());
        }
        setup
    }
}

impl TierFile {
    pub(crate) fn new(path: &Path, bytes: Vec<u8>, rules: &TierRules) -> Result<Self, ConfigError> {
        let map = TierMap::read(&bytes, rules)
            .map_err(|found| ConfigErrorKind::Invalid(found).of(path))?;
        Ok(Self { path: path.into(), bytes, map })
    }
}

impl KeyFile {
    pub(crate) fn new(path: &Path, jwt: &Jwt, bytes: Vec<u8>) -> Result<Self, ConfigError> {
        let tokens =
            Verifier::new(jwt, &bytes).map_err(|error| ConfigErrorKind::Keys(error).of(path))?;
        Ok(Self { path: path.into(), bytes, verifier: Arc::new(tokens) })
    }
}

/// Requires a regular file, which can be read repeatedly without waiting for a writer.
fn require_regular(path: &Path) -> Result<(), ConfigError> {
    let not_regular = || io::Error::other("it is not a regular file, and cannot be read again");
    let found = path.metadata();
    found
        .and_then(|found| if found.is_file() { Ok(()) } else { Err(not_regular()) })
        .map_err(|error| ConfigError::unreadable(path, error))
}

/// Reads a file that the policy names.
pub(super) fn read_regular(path: &Path) -> Result<Vec<u8>, ConfigError> {
    require_regular(path)?;
    read(path)
}

fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    read_capped(path).map_err(|error| ConfigError::unreadable(path, error))
}
