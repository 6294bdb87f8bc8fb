//! Node: the state that all front ends share.

mod figures;
pub(crate) mod modes;
pub mod tier_cache;

use crate::config::ConfigErrorKind;
use crate::front::admin::StreamCounters;
use crate::front::resp::RespAuth;
use crate::storage::Storage;
use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use modes::ModeOverrides;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use tier_cache::{TierCache, TierKey};
use tollgate::StoreError;
use tollgate::engine::policy::Compiled;
use tollgate::engine::{Gate, GateSetup, Rules};
use tollgate::store::{ProcessClock, StoreReply};
use tollgate_net::{Health, WatchedThreads, lock};
use tollgate_observe::DecisionWatchers;
use tollgate_observe::audit::{AuditEntry, AuditLog};
use tollgate_observe::history::History;
use tollgate_observe::keys::KeySecrets;
use tollgate_observe::metrics::Metrics;
use tollgate_observe::record::Records;
use tollgate_observe::tail::Tail;
use tollgate_observe::top::{FleetTop, TopKeys};
use tollgate_observe::trace;
use tollgate_observe::usage::UsageTrail;
use tollgate_policy::facts::Facts;
use tollgate_policy::policy::InvalidPolicy;
use tollgate_policy::settings::{Settings, TierSource};
use tollgate_policy::{Diagnostic, lint};
use tollgate_tower::{Engine, Task, Verifier};

/// The engine of a node, on the store that its file names.
pub type NodeGate = Gate<Storage>;

/// Everything a front end needs; one per process, shared by `Arc`.
#[derive(Debug)]
pub struct Node {
    /// The engine.
    pub gate: NodeGate,
    /// The clock, read once for each request.
    pub clock: ProcessClock,
    /// Counters.
    pub metrics: Metrics,
    /// Health, for `/readyz`.
    pub health: Arc<Health>,
    /// The password of Redis clients.
    pub resp_auth: RespAuth,
    /// Secrets that hash keys for operators.
    pub(crate) keys: KeySecrets,
    /// The top keys.
    pub(crate) top: Arc<TopKeys>,
    /// Top keys of all nodes of a store.
    pub(crate) fleet_top: FleetTop,
    /// The readers of the tail.
    pub(crate) tail: Arc<Tail>,
    /// Counters of the admin API's streams.
    pub(crate) streams: StreamCounters,
    /// 15 minutes of counters, for charts.
    pub(crate) history: History,
    /// The decision log and the access log.
    pub(crate) records: Records,
    /// The usage trail, if the file has `usage`.
    pub(crate) usage: Option<Arc<UsageTrail>>,
    /// The audit log.
    audit: ArcSwap<AuditLog>,
    modes: ModeOverrides,
    /// The threads with a heartbeat.
    pub(crate) threads: Arc<WatchedThreads>,
    tiers: TierCache,
    tokens: ArcSwapOption<Verifier>,
    file: ArcSwap<PolicyFile>,
    /// Names of limits of earlier files with overflowed keys, by state id.
    overflowed_names: Mutex<BTreeMap<u64, Box<str>>>,
}

/// The file in force. Settings that affect decisions are in the rules instead, which a request
/// loads once.
#[derive(Debug)]
#[non_exhaustive]
pub struct PolicyFile {
    /// All settings of the file, without its limits.
    pub settings: Settings,
    /// Warnings about the file.
    pub lints: Vec<Diagnostic>,
}

impl PolicyFile {
    /// The settings and lints of a compiled file.
    pub fn new(compiled: Compiled) -> Self {
        Self { lints: lint(&compiled), settings: compiled.settings }
    }
}

impl Node {
    /// Creates a node from a compiled policy and its setup: the policy plus the files that it
    /// names.
    ///
    /// # Errors
    ///
    /// When the limits do not form a policy, or the settings of the store are unusable.
    pub fn new(compiled: Compiled, setup: GateSetup) -> Result<Self, ConfigErrorKind> {
        Self::in_folder(Path::new(""), compiled, setup)
    }

    /// Like [`new`](Self::new), with relative paths starting in this folder.
    ///
    /// # Errors
    ///
    /// When the limits do not form a policy, or the settings of the store are unusable.
    pub fn in_folder(
        folder: &Path,
        compiled: Compiled,
        setup: GateSetup,
    ) -> Result<Self, ConfigErrorKind> {
        let store = &compiled.settings.store;
        let storage = Storage::new(store, folder, |name| std::env::var_os(name));
        let storage = storage.map_err(ConfigErrorKind::Storage)?;
        let audit = AuditLog::of(&compiled.settings, folder).map_err(ConfigErrorKind::Audit)?;
        let (top, tail) = (Arc::<TopKeys>::default(), Arc::<Tail>::default());
        let usage = compiled.settings.usage.as_ref();
        let usage = usage.map(|usage| Arc::new(UsageTrail::new(usage)));
        let observer =
            DecisionWatchers { top: top.clone(), tail: tail.clone(), usage: usage.clone() };
        let gate = Gate::new(setup, storage);
        let mut gate = gate.map_err(ConfigErrorKind::Policy)?.with_observer(Arc::new(observer));
        if let Some(deny_cache) = Storage::deny_cache(store) {
            gate = gate.with_deny_cache(deny_cache);
        }
        let health = Arc::<Health>::default();
        let records = Records::default();
        let logs = records.open(&compiled.settings, folder).map_err(ConfigErrorKind::Record)?;
        records.set(logs);
        Ok(Self {
            gate,
            clock: ProcessClock,
            metrics: Metrics::default(),
            health: health.clone(),
            resp_auth: RespAuth::default(),
            keys: KeySecrets::default(),
            top,
            fleet_top: FleetTop::default(),
            tail,
            streams: StreamCounters::default(),
            history: History::default(),
            records,
            usage,
            audit: ArcSwap::from_pointee(audit),
            modes: ModeOverrides::default(),
            threads: Arc::new(WatchedThreads::new(health)),
            tiers: TierCache::default(),
            tokens: ArcSwapOption::empty(),
            file: ArcSwap::from_pointee(PolicyFile::new(compiled)),
            overflowed_names: Mutex::default(),
        })
    }

    /// The file in force.
    pub fn file(&self) -> Guard<Arc<PolicyFile>> {
        self.file.load()
    }

    /// Whether traces or the decision log record single decisions.
    #[inline]
    pub(crate) fn watches_decisions(&self) -> bool {
        trace::enabled() || self.records.logs_decisions()
    }

    /// Replaces the audit log.
    pub(crate) fn set_audit(&self, audit: AuditLog) {
        self.audit.store(Arc::new(audit));
    }

    /// Writes a line of the audit log. The error is a text for people.
    pub(crate) async fn record(&self, entry: &AuditEntry<'static>) -> Result<(), String> {
        self.try_record(entry).await.inspect_err(|error| {
            self.metrics.audit_failure();
            tracing::error!(error, what = entry.what, "audit log not writable: change refused");
        })
    }

    /// Like [`record`](Self::record), for a caller that retries. Writes on a separate thread.
    async fn try_record(&self, entry: &AuditEntry<'static>) -> Result<(), String> {
        let (audit, entry) = (self.audit.load_full(), entry.clone());
        let written = tokio::task::spawn_blocking(move || audit.write(&entry)).await;
        match written {
            Ok(written) => written.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The token verifier, if the file has `jwt`.
    pub fn tokens(&self) -> Option<Arc<Verifier>> {
        self.tokens.load_full()
    }

    /// Replaces the token verifier.
    pub fn set_tokens(&self, tokens: Option<Arc<Verifier>>) {
        self.tokens.store(tokens);
    }

    /// Sets the tier of the client: from the hash in Redis, else from the map of the rules.
    pub fn identify<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        facts: &'a mut Facts<'r>,
        now_us: u64,
    ) -> StoreReply<'a, (), ()> {
        rules.identify(facts);
        self.tier(facts, now_us).map(move |tier| {
            if let Some(tier) = tier {
                facts.copy_tier(&tier);
            }
        })
    }

    /// The tier of the client from the hash in Redis; `None` without such a hash, or if it lacks
    /// the client.
    fn tier(&self, facts: &Facts<'_>, now_us: u64) -> StoreReply<'_, Option<Arc<str>>, ()> {
        let storage = self.gate.store();
        if let Storage::Memory(_) = storage {
            return StoreReply::Now(None);
        }
        let file = self.file.load_full();
        let Some(TierSource::Redis { by, .. }) = &file.settings.tiers.source else {
            return StoreReply::Now(None);
        };
        let Some(value) = facts.unhashed(by).map(Cow::into_owned) else {
            return StoreReply::Now(None);
        };
        StoreReply::later((), async move {
            let Some(TierSource::Redis { hash, by }) = &file.settings.tiers.source else {
                return None;
            };
            let who = TierKey { value: &value, is_secret: **by == *"api_key" };
            let failed = |error: &StoreError| self.metrics.store_error(error.kind);
            self.tiers.tier(storage, hash, who, now_us, failed).await
        })
    }

    /// Decisions in shared cells: the state id of the limit, its name, and the count. A limit has
    /// several ids if its tiers or earlier files gave it several periods.
    pub fn overflowed(&self) -> Vec<(u64, Box<str>, u64)> {
        let rules = self.gate.rules();
        let policy = rules.policy();
        let earlier = self.lock_overflowed_names();
        let name = |id: u64| {
            let variant = policy.tier_params().iter().find(|variant| variant.id == id);
            let now = variant.map(|variant| policy.limits()[variant.limit].name.clone());
            now.or_else(|| earlier.get(&id).cloned())
        };
        let memory = self.gate.store().memory();
        let counts = memory.map(|memory| memory.overflowed()).unwrap_or_default().into_iter();
        counts.filter_map(|(id, count)| Some((id, name(id)?, count))).collect()
    }

    fn lock_overflowed_names(&self) -> MutexGuard<'_, BTreeMap<u64, Box<str>>> {
        lock(&self.overflowed_names)
    }

    /// Puts another file in force: its limits, then its settings.
    ///
    /// # Errors
    ///
    /// When the limits do not form a policy; then nothing changes.
    pub fn replace(&self, compiled: Compiled, setup: GateSetup) -> Result<(), InvalidPolicy> {
        let overflowed = self.overflowed();
        self.gate.replace(setup)?;
        self.lock_overflowed_names().extend(overflowed.into_iter().map(|(id, name, _)| (id, name)));
        self.file.store(Arc::new(PolicyFile::new(compiled)));
        Ok(())
    }
}

/// The engine of the HTTP gate.
impl Engine for Node {
    type Store = Storage;

    fn gate(&self) -> &NodeGate {
        &self.gate
    }

    fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    fn identify<'a, 'r: 'a>(
        &'a self,
        rules: &'r Rules,
        facts: &'a mut Facts<'r>,
        now_us: u64,
    ) -> impl Future<Output = ()> + Send {
        Self::identify(self, rules, facts, now_us)
    }

    fn verifier(&self) -> Option<Arc<Verifier>> {
        Self::tokens(self)
    }

    /// Spawns on the worker's runtime. A worker that is ending has none; then the task is lost, as
    /// in a crash.
    fn spawn(&self, task: Task) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(task);
        }
    }
}
