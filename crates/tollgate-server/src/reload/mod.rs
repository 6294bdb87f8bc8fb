//! Reloads: detects changed files and applies them, or keeps the last good ones.
//!
//! All limits are swapped at once, and no request waits. Counts, open reservations and an
//! operator's modes stay. Changes of `listen` and `store` need a restart; the log names them.

mod control_thread;
mod memory_trim;
pub mod poll;
mod startup;
#[cfg(test)]
mod tests;
mod tracked_file;

use crate::Node;
use crate::config::{
    Config, ConfigError, ConfigErrorKind, KeyFile, LoadedConfig, RatelimitFiles, TierFile,
    WatchedRatelimitFiles,
};
use crate::front::admin::{Admin, LastReload, PolicyOrigin};
use crate::tls::Certificate;
use poll::read_capped;
use startup::StartupSettings;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tollgate_net::lock;
use tollgate_observe::metrics::ReloadResult;
use tollgate_policy::{Compiled, TierRules};
use tracked_file::TrackedFile;

pub use control_thread::ReloadHandle;
pub(crate) use control_thread::{ControlThread, reload_channel};

/// The subject of policy problems in `/readyz`.
const POLICY: &str = "policy";
const TIERS: &str = "tiers";
const KEYS: &str = "keys";

/// A policy in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppliedPolicy {
    /// The generation of the rules.
    pub generation: u64,
    /// The number of limits.
    pub limits: usize,
    /// Changed fields that need a restart.
    pub restart_for: Vec<&'static str>,
}

/// The reason why a reload failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// The file is unusable; the last good one stays in force.
    #[error("{0}")]
    Config(ConfigError),
    /// The process is stopping.
    #[error("the process is stopping")]
    Stopping,
    /// The reload panicked; the log has the message.
    #[error("the reload panicked; see the log")]
    Panicked,
}

/// Reloads changed files.
pub(crate) struct Reloader {
    node: Arc<Node>,
    admin: Option<Arc<Admin>>,
    origin: SharedOrigin,
    config: Config,
    startup: StartupSettings,
    policy: Option<TrackedFile>,
    tiers: Option<TrackedFile>,
    /// The tier rules of the policy in force, for the tier file.
    tier_rules: TierRules,
    keys: Option<TrackedFile>,
    ratelimit: Option<WatchedRatelimitFiles>,
    /// The certificate of `listen.grpc`. The gateway watches its own.
    certificate: Option<Arc<Certificate>>,
    /// The bad file that a rejected policy names.
    blocking_file: Option<TrackedFile>,
}

/// The origin of the policy in force, for the admin API.
pub(crate) type SharedOrigin = Arc<Mutex<PolicyOrigin>>;

impl Reloader {
    /// Creates a reloader of a node that runs on `loaded`.
    pub(crate) fn new(
        node: Arc<Node>,
        admin: Option<Arc<Admin>>,
        origin: SharedOrigin,
        config: Config,
        loaded: LoadedConfig,
    ) -> Self {
        let startup = StartupSettings::of(&loaded.compiled.settings);
        let tier_rules = TierRules::of(&loaded.compiled);
        // A pipe is not watched.
        let policy = config.path().filter(|path| path.is_file());
        let policy = policy.map(|path| TrackedFile::new(path, loaded.bytes));
        let tiers = loaded.tiers.map(|tiers| TrackedFile::new(&tiers.path, tiers.bytes));
        let keys = loaded.keys.map(|keys| TrackedFile::new(&keys.path, keys.bytes));
        let ratelimit = loaded.ratelimit.map(|files| files.watch());
        Self {
            node,
            admin,
            origin,
            config,
            startup,
            policy,
            tiers,
            tier_rules,
            keys,
            ratelimit,
            certificate: None,
            blocking_file: None,
        }
    }

    /// Also reloads this certificate.
    pub(crate) fn with_certificate(self, certificate: Option<Arc<Certificate>>) -> Self {
        Self { certificate, ..self }
    }

    /// Logs the policy in force.
    pub(crate) fn announce(&self) {
        self.log_applied(&self.applied(Vec::new()));
    }

    /// Loads the file and applies it, changed or not.
    pub(crate) fn reload(&mut self) -> Result<AppliedPolicy, ConfigError> {
        self.put_in_force(self.config.load_regular())
    }

    fn put_in_force(
        &mut self,
        loaded: Result<LoadedConfig, ConfigError>,
    ) -> Result<AppliedPolicy, ConfigError> {
        let result = loaded.and_then(|loaded| self.apply(loaded));
        self.report(POLICY, result)
    }

    /// Polls each file once, and applies new content that has settled.
    pub(crate) fn poll(&mut self) {
        if let Some(certificate) = &self.certificate {
            certificate.poll(&self.node.health, self.node.clock.now_us());
        }
        let blocking_file = self.blocking_file.as_mut().and_then(TrackedFile::poll);
        let ratelimit_changed = self.ratelimit.as_mut().is_some_and(WatchedRatelimitFiles::poll);
        if ratelimit_changed || matches!(blocking_file, Some(Ok(_))) {
            let _ = self.reload();
        }
        if let Some(found) = self.policy.as_mut().and_then(TrackedFile::poll) {
            let _ = self.put_in_force(found.and_then(|bytes| self.config.parse(bytes)));
        }
        if let Some(found) = self.tiers.as_mut().and_then(TrackedFile::poll) {
            let result = found.and_then(|bytes| self.apply_tiers(bytes));
            let _ = self.report(TIERS, result);
        }
        if let Some(found) = self.keys.as_mut().and_then(TrackedFile::poll) {
            let result = found.and_then(|bytes| self.apply_keys(bytes));
            let _ = self.report(KEYS, result);
        }
    }

    fn apply(&mut self, loaded: LoadedConfig) -> Result<AppliedPolicy, ConfigError> {
        let setup = loaded.setup();
        let LoadedConfig { bytes, compiled, tiers, keys, ratelimit } = loaded;
        self.check_limits_kept(&compiled, ratelimit.as_ref())?;
        let restart_for = self.startup.changed_fields(&StartupSettings::of(&compiled.settings));
        let access =
            self.admin.as_ref().map(|_| self.config.access(&compiled.settings)).transpose()?;
        let audit = self.config.audit_log(&compiled.settings)?;
        let logs = self.node.records.open(&compiled.settings, self.config.folder());
        let logs = logs.map_err(|error| ConfigErrorKind::Record(error).of(self.config.name()))?;
        let password = self.config.password(&compiled.settings)?;
        let keys_secret = self.config.keys_secret(&compiled.settings)?;
        let invalid = |error| ConfigErrorKind::Policy(error).of(self.config.name());
        let tier_rules = TierRules::of(&compiled);
        self.node.replace(compiled, setup).map_err(invalid)?;
        self.tier_rules = tier_rules;
        self.node.set_tokens(keys.as_ref().map(|keys| keys.verifier.clone()));
        if let (Some(admin), Some(access)) = (&self.admin, access) {
            admin.set_access(access);
        }
        self.node.set_audit(audit);
        self.node.records.set(logs);
        self.node.resp_auth.set_password(password);
        self.node.keys.configure(keys_secret.as_deref());
        // The tiers and keys were loaded with the policy.
        self.node.health.clear(TIERS);
        self.node.health.clear(KEYS);
        if let Some(policy) = &mut self.policy {
            policy.accept(bytes);
        }
        let tiers = tiers.map(|tiers| (tiers.path, tiers.bytes));
        TrackedFile::track(&mut self.tiers, tiers);
        TrackedFile::track(&mut self.keys, keys.map(|keys| (keys.path, keys.bytes)));
        self.ratelimit = ratelimit.map(|files| files.watch());
        for field in &restart_for {
            tracing::warn!(
                field,
                "this field changed and needs a restart; the rest of the file is applied"
            );
        }
        Ok(self.applied(restart_for))
    }

    /// Rejects a file that drops all limits without `limits: []`: it may be truncated.
    fn check_limits_kept(
        &self,
        compiled: &Compiled,
        ratelimit: Option<&RatelimitFiles>,
    ) -> Result<(), ConfigError> {
        let in_force = self.applied(Vec::new()).limits;
        let has_rules = ratelimit.is_some_and(|files| !files.configs.rules().is_empty());
        let is_written = compiled.file.limits.is_some() || has_rules;
        if is_written || in_force == 0 {
            Ok(())
        } else {
            Err(ConfigErrorKind::LimitsRemoved(in_force).of(self.config.name()))
        }
    }

    fn apply_tiers(&mut self, bytes: Vec<u8>) -> Result<AppliedPolicy, ConfigError> {
        if let Some(tracked) = &mut self.tiers {
            let tiers = TierFile::new(tracked.path(), bytes, &self.tier_rules)?;
            let invalid = |error| ConfigErrorKind::Policy(error).of(tracked.path());
            self.node.gate.set_tiers(Some(tiers.map)).map_err(invalid)?;
            tracked.accept(tiers.bytes);
        }
        Ok(self.applied(Vec::new()))
    }

    fn apply_keys(&mut self, bytes: Vec<u8>) -> Result<AppliedPolicy, ConfigError> {
        let file = self.node.file();
        if let (Some(jwt), Some(tracked)) = (&file.settings.jwt, &mut self.keys) {
            let keys = KeyFile::new(tracked.path(), jwt, bytes)?;
            self.node.set_tokens(Some(keys.verifier));
            tracked.accept(keys.bytes);
        }
        Ok(self.applied(Vec::new()))
    }

    fn applied(&self, restart_for: Vec<&'static str>) -> AppliedPolicy {
        let rules = self.node.gate.rules();
        // Limits of shedders are not in the file.
        let limits = rules.policy().limits().iter().filter(|limit| !limit.selector.is_shed());
        AppliedPolicy { generation: rules.generation(), limits: limits.count(), restart_for }
    }

    fn log_applied(&self, AppliedPolicy { generation, limits, .. }: &AppliedPolicy) {
        let file = self.config.name();
        tracing::info!(file = %file.display(), generation, limits, "policy in force");
        let unmatched =
            self.ratelimit.as_ref().map(WatchedRatelimitFiles::unmatched).unwrap_or_default();
        for found in unmatched {
            let (line, column) = (found.line, found.column);
            tracing::warn!(file = %file.display(), line, column, help = %found.help, "{}", found.message);
        }
        if *limits == 0 {
            let is_empty =
                self.policy.as_ref().is_some_and(|policy| is_blank(&policy.applied_bytes));
            let why = match (is_empty, unmatched.is_empty(), &self.ratelimit) {
                (true, ..) => "the file is empty, which is valid",
                (_, false, _) => "`envoy.configs` matches no file with limits",
                (_, _, Some(_)) => "the file has no limits, and those of `envoy.configs` have none",
                (_, _, None) => "the file has no limits",
            };
            match self.node.gate.rules().policy().limits() {
                [] => tracing::warn!(why, "no limits are configured: every request is admitted"),
                _ => tracing::warn!(why, "no limits are configured: only `shed` refuses requests"),
            }
        }
    }

    /// Counts and logs a result, and updates the node's health.
    fn report(
        &mut self,
        subject: &'static str,
        result: Result<AppliedPolicy, ConfigError>,
    ) -> Result<AppliedPolicy, ConfigError> {
        let tracked = match subject {
            POLICY => &mut self.policy,
            TIERS => &mut self.tiers,
            _ => &mut self.keys,
        };
        if let Some(tracked) = tracked {
            tracked.is_rejected = result.is_err();
        }
        if subject == POLICY {
            let other = result.as_ref().err().map(|error| &*error.file);
            let other = other.filter(|file| Some(*file) != self.config.path());
            // The ratelimit files are already watched: a second watch would reload twice.
            let is_in_set =
                |file: &Path| self.ratelimit.as_ref().is_some_and(|set| set.contains(file));
            let other = other.filter(|file| !is_in_set(file));
            self.blocking_file =
                other.map(|file| TrackedFile::new(file, read_capped(file).unwrap_or_default()));
        }
        let error = result.as_ref().err().map(ToString::to_string);
        let last = LastReload { time_us: self.node.clock.now_us(), error };
        lock(&self.origin).last_reload = Some(last);
        match &result {
            Ok(in_force) => {
                self.node.health.clear(subject);
                self.node.metrics.reload(ReloadResult::Ok);
                // Logged last, so that everything else is done when the line appears.
                self.log_applied(in_force);
            }
            Err(error) => {
                let error = error.to_string();
                let line = error.replace('\n', "; ");
                self.node.health.degrade(subject, error);
                self.node.metrics.reload(ReloadResult::Error);
                let stays = if subject == TIERS { "stay" } else { "stays" };
                tracing::error!(error = %line, "not reloaded: the last good {subject} {stays} in force");
            }
        }
        result
    }
}

/// Whether a file has only blank lines and comments.
fn is_blank(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.all(|line| line.is_empty() || line.starts_with(b"#"))
}
