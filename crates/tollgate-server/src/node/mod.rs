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
use tollgate::engine::{Gate, Rules, Setup};
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

/// The engine that a node runs, over whichever store its file names.
pub type NodeGate = Gate<Storage>;

/// Everything a front end needs; one per process, shared by `Arc`.
#[derive(Debug)]
pub struct Node {
    /// Decides.
    pub gate: NodeGate,
    /// Says when. Read once for each request.
    pub clock: ProcessClock,
    /// Counts.
    pub metrics: Metrics,
    /// Says how the node is.
    pub health: Arc<Health>,
    /// Whom the front end for Redis clients lets in.
    pub resp_auth: RespAuth,
    /// Hashes keys for operators.
    pub(crate) keys: KeySecrets,
    /// The keys with the most units.
    pub(crate) top: Arc<TopKeys>,
    /// The same of all nodes of a store.
    pub(crate) fleet_top: FleetTop,
    /// The readers of decisions.
    pub(crate) tail: Arc<Tail>,
    /// The streams of the admin API.
    pub(crate) streams: StreamCounters,
    /// What charts begin with.
    pub(crate) history: History,
    /// The decision log and the access log.
    pub(crate) records: Records,
    /// Who used how much, where the file has `usage`.
    pub(crate) usage: Option<Arc<UsageTrail>>,
    /// Where changes are recorded.
    audit: ArcSwap<AuditLog>,
    modes: ModeOverrides,
    /// The threads that have a heartbeat.
    pub(crate) threads: Arc<WatchedThreads>,
    tiers: TierCache,
    tokens: ArcSwapOption<Verifier>,
    file: ArcSwap<PolicyFile>,
    /// The names of limits whose keys overflowed, by what the store called them under earlier
    /// files.
    overflowed_names: Mutex<BTreeMap<u64, Box<str>>>,
}

/// How the process behaves, by the file in force. What a decision's answer depends on is part of
/// the rules instead, which a request loads once.
#[derive(Debug)]
#[non_exhaustive]
pub struct PolicyFile {
    /// Everything in the file but its limits.
    pub settings: Settings,
    /// The warnings that the file deserves.
    pub lints: Vec<Diagnostic>,
}

impl PolicyFile {
    /// By what a file says.
    pub fn new(compiled: Compiled) -> Self {
        Self { lints: lint(&compiled), settings: compiled.settings }
    }
}

impl Node {
    /// A node by what `compiled` says, with `setup`, which is of the same file and has what other
    /// files add to it.
    ///
    /// # Errors
    ///
    /// When the limits do not make a policy, or the store cannot be used as the file says.
    pub fn new(compiled: Compiled, setup: Setup) -> Result<Self, ConfigErrorKind> {
        Self::in_folder(Path::new(""), compiled, setup)
    }

    /// The same, with the files that the settings name in this folder.
    ///
    /// # Errors
    ///
    /// When the limits do not make a policy, or the store cannot be used as the file says.
    pub fn in_folder(
        folder: &Path,
        compiled: Compiled,
        setup: Setup,
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

    /// How to answer.
    pub fn file(&self) -> Guard<Arc<PolicyFile>> {
        self.file.load()
    }

    /// Whether anyone wants to see single decisions: traces, or the decision log.
    #[inline]
    pub(crate) fn watches_decisions(&self) -> bool {
        trace::enabled() || self.records.logs_decisions()
    }

    /// Records changes there from now on.
    pub(crate) fn set_audit(&self, audit: AuditLog) {
        self.audit.store(Arc::new(audit));
    }

    /// Writes a line of the audit log. The error says why it could not be written, for people.
    pub(crate) async fn record(&self, entry: &AuditEntry<'static>) -> Result<(), String> {
        self.try_record(entry).await.inspect_err(|error| {
            self.metrics.audit_failure();
            tracing::error!(error, what = entry.what, "a change could not be recorded");
        })
    }

    /// The same for a caller that tries again. Writes away from the thread that serves.
    async fn try_record(&self, entry: &AuditEntry<'static>) -> Result<(), String> {
        let (audit, entry) = (self.audit.load_full(), entry.clone());
        let written = tokio::task::spawn_blocking(move || audit.write(&entry)).await;
        match written {
            Ok(written) => written.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// What verifies tokens, where the file has `jwt`.
    pub fn tokens(&self) -> Option<Arc<Verifier>> {
        self.tokens.load_full()
    }

    /// Verifies tokens by these keys from now on.
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

    /// The tier of the client from the hash in Redis; `None` without such a hash, and for clients
    /// that it does not have.
    pub(crate) fn tier(
        &self,
        facts: &Facts<'_>,
        now_us: u64,
    ) -> StoreReply<'_, Option<Arc<str>>, ()> {
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

    /// Decisions in cells that keys share, by limit: by the store's name for it and its own. A
    /// limit has several states where its tiers or earlier files gave it several periods.
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

    /// Puts another file in force: its limits, then how to answer.
    ///
    /// # Errors
    ///
    /// When the limits do not make a policy; then all stays as it was.
    pub fn replace(&self, compiled: Compiled, setup: Setup) -> Result<(), InvalidPolicy> {
        let overflowed = self.overflowed();
        self.gate.replace(setup)?;
        self.lock_overflowed_names().extend(overflowed.into_iter().map(|(id, name, _)| (id, name)));
        self.file.store(Arc::new(PolicyFile::new(compiled)));
        Ok(())
    }
}

/// A node decides over HTTP.
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

    /// On the worker's own runtime. A worker that is ending has none, and then it is as if the node
    /// had crashed.
    fn spawn(&self, task: Task) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(task);
        }
    }
}
