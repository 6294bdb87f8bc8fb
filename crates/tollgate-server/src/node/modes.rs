//! Mode overrides: of this node, and of all nodes of a store.
//!
//! The fleet's overrides are a table in the store. Each node reads the table several times a
//! second, and keeps the latest version of each name. A store that lost the table gets it back from
//! any node. No override takes effect before this node's audit log has a line for it.

use super::{Node, lock};
use crate::storage::Storage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tollgate::StoreError;
use tollgate::engine::{ModeOverride, Rules};
use tollgate::store::redis::{SharedChange, SharedTable, SharedValue};
use tollgate_observe::audit::{AuditActor, AuditEntry};
use tollgate_observe::time::rfc3339;
use tollgate_policy::limit::{Limit, Mode};
use tollgate_policy::shed::{ADAPTIVE, FLEET};

/// The name of the table in the store.
const TABLE: &str = "modes";
/// The subject of problems in `/readyz`.
const SUBJECT: &str = "mode overrides";
/// Limit of a name; longer than any name in a policy file. Names in Envoy's files can be longer.
const FLEET_NAME_BYTES_MAX: usize = 1_024;

/// The nodes of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OverrideScope {
    /// All nodes of the store, until cleared.
    Fleet,
    /// This node, until cleared or until the node ends.
    Node,
}

/// The overrides of a node and of its fleet.
#[derive(Debug, Default)]
pub(crate) struct ModeOverrides {
    known: Mutex<KnownOverrides>,
    /// Held while a change is recorded and made, so that the recorded previous mode is true.
    change_lock: tokio::sync::Mutex<()>,
    /// Whether the fleet's table was read at least once.
    is_read: AtomicBool,
    /// Whether the failure to record overrides was already logged.
    is_unrecorded_logged: AtomicBool,
}

#[derive(Clone, Debug, Default)]
struct KnownOverrides {
    fleet: SharedTable,
    /// Overrides, in the order in which they were set.
    node: Vec<(Box<str>, StoredOverride)>,
}

/// An override and its origin, as stored in the table. A cleared one has no mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredOverride {
    mode: Option<Box<str>>,
    at: String,
    who: AuditActor,
}

/// An override and its origin.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ListedOverride {
    pub(crate) name: Box<str>,
    #[serde(serialize_with = "serialize_mode")]
    pub(crate) mode: Mode,
    pub(crate) scope: OverrideScope,
    /// Whether the override decides the mode of any limit in the policy.
    pub(crate) in_effect: bool,
    who: AuditActor,
    at: String,
}

/// A change of an override.
#[derive(Clone, Debug)]
pub(crate) struct OverrideChange<'a> {
    pub(crate) name: &'a str,
    /// The new mode; `None` clears the override.
    pub(crate) mode: Option<Mode>,
    pub(crate) scope: OverrideScope,
    pub(crate) who: AuditActor,
}

/// The modes of the limits that a change covers, before and after it; `None` if they differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverrideOutcome {
    pub(crate) before: Option<Mode>,
    pub(crate) after: Option<Mode>,
    /// Whether an override of this node decides for one of these limits.
    pub(crate) is_masked: bool,
    /// Whether this node knew an override of this name and scope.
    pub(crate) was_overridden: bool,
}

/// The reason why a change was not made.
#[derive(Debug)]
pub(crate) enum OverrideError {
    /// No limit has this name.
    UnknownLimit,
    /// The name is too long, or has control characters.
    UnusableName,
    /// The memory store has no fleet.
    NotShared,
    /// The audit log is not writable.
    Unrecorded(String),
    /// The store failed; the change may have been made.
    Store(StoreError),
}

/// Parses the name of a mode.
pub(crate) fn parse_mode(word: &str) -> Option<Mode> {
    [Mode::Enforce, Mode::Shadow, Mode::Off].into_iter().find(|mode| mode.word() == word)
}

fn serialize_mode<S: serde::Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(mode.word())
}

impl StoredOverride {
    fn mode(&self) -> Option<Mode> {
        self.mode.as_deref().and_then(parse_mode)
    }
}

impl KnownOverrides {
    /// The overrides in force; later ones win. The node's own come after the fleet's.
    fn in_order(&self) -> Vec<(OverrideScope, Box<str>, Mode, StoredOverride)> {
        let mut fleet: Vec<_> = self.fleet.iter().filter(|(_, value)| !value.is_cleared).collect();
        fleet.sort_by(|a, b| a.1.version.cmp(&b.1.version));
        let fleet = fleet.into_iter().filter_map(|(name, value)| {
            let stored: StoredOverride = serde_json::from_str(&value.value).ok()?;
            Some((OverrideScope::Fleet, name.into(), stored.mode()?, stored))
        });
        let node = self.node.iter().filter_map(|(name, stored)| {
            Some((OverrideScope::Node, name.clone(), stored.mode()?, stored.clone()))
        });
        fleet.chain(node).collect()
    }

    /// The overrides after a change. The fleet's come before the node's.
    fn after(&self, scope: OverrideScope, name: &str, mode: Option<Mode>) -> Vec<ModeOverride> {
        let mut all = self.in_order();
        all.retain(|(of, known, ..)| *of != scope || **known != *name);
        let fleet = all.iter().filter(|one| one.0 == OverrideScope::Fleet).count();
        let place = if scope == OverrideScope::Fleet { fleet } else { all.len() };
        let mut all: Vec<_> =
            all.into_iter().map(|(_, name, mode, _)| ModeOverride { name, mode }).collect();
        if let Some(mode) = mode {
            all.insert(place, ModeOverride::new(name, mode));
        }
        all
    }

    fn for_gate(&self) -> Vec<ModeOverride> {
        let all = self.in_order().into_iter();
        all.map(|(_, name, mode, _)| ModeOverride { name, mode }).collect()
    }

    fn has(&self, scope: OverrideScope, name: &str) -> bool {
        match scope {
            OverrideScope::Fleet => self.fleet.get(name).is_some_and(|value| !value.is_cleared),
            OverrideScope::Node => self.node.iter().any(|(known, _)| **known == *name),
        }
    }

    fn set_on_node(&mut self, name: &str, stored: StoredOverride) {
        self.node.retain(|(known, _)| **known != *name);
        if stored.mode.is_some() {
            self.node.push((name.into(), stored));
        }
    }
}

impl Node {
    /// The overrides in force; later ones win.
    pub(crate) fn mode_overrides(&self) -> Vec<ListedOverride> {
        let known = lock(&self.modes.known).in_order();
        let gate: Vec<_> =
            known.iter().map(|(_, name, mode, _)| ModeOverride::new(name, *mode)).collect();
        let rules = self.gate.rules();
        let limits = rules.policy().limits();
        let decides = |place: usize| {
            let is_it = |one: &ModeOverride| std::ptr::eq(one, &gate[place]);
            limits.iter().any(|limit| ModeOverride::deciding(&gate, &limit.name).is_some_and(is_it))
        };
        let listed = known.into_iter().enumerate().map(|(place, (scope, name, mode, stored))| {
            let (in_effect, StoredOverride { at, who, .. }) = (decides(place), stored);
            ListedOverride { name, mode, scope, in_effect, who, at }
        });
        listed.collect()
    }

    /// The number of overrides of the fleet, and of this node.
    pub(crate) fn mode_override_counts(&self) -> [u64; 2] {
        let known = lock(&self.modes.known).in_order();
        let count = |scope| known.iter().filter(|one| one.0 == scope).count() as u64;
        [OverrideScope::Fleet, OverrideScope::Node].map(count)
    }

    /// Records a change of an override, and makes it.
    pub(crate) async fn change_override(
        &self,
        change: &OverrideChange<'_>,
    ) -> Result<OverrideOutcome, OverrideError> {
        let OverrideChange { name, mode, scope, ref who } = *change;
        let store = self.gate.store().redis();
        if scope == OverrideScope::Fleet {
            store.ok_or(OverrideError::NotShared)?;
            if name.len() > FLEET_NAME_BYTES_MAX || name.contains(char::is_control) {
                return Err(OverrideError::UnusableName);
            }
        }
        let _one_at_a_time = self.modes.change_lock.lock().await;
        let is_known = || {
            let is_cleared = mode.is_none() && lock(&self.modes.known).has(scope, name);
            let rules = self.gate.rules();
            let is_shedder = |limit: &&Limit| {
                limit.selector.is_shed() && [FLEET, ADAPTIVE].contains(&&*limit.name)
            };
            let shedders = rules.policy().limits().iter().filter(is_shedder);
            let limits = rules.policy().nameable_limits().map(|(_, limit)| limit);
            let mut names = limits.chain(shedders).map(|limit| &*limit.name);
            let is_covered = names.any(|limit| ModeOverride::covers(name, limit));
            name == ModeOverride::ALL || is_cleared || is_covered
        };
        if !is_known() {
            return Err(OverrideError::UnknownLimit);
        }
        let stored = StoredOverride {
            mode: mode.map(|mode| mode.word().into()),
            at: rfc3339(self.clock.now_us()),
            who: who.clone(),
        };
        let (mut entry, outcome) = self.override_record(scope, name, &stored);
        self.record(&entry).await.map_err(OverrideError::Unrecorded)?;
        if !is_known() {
            // A reload removed the limit while the line was written.
            let gone = format!("no limit is called `{}` any more", name.escape_debug());
            entry.error = Some(gone);
            let _ = self.record(&entry).await;
            return Err(OverrideError::UnknownLimit);
        }
        match store.filter(|_| scope == OverrideScope::Fleet) {
            None => lock(&self.modes.known).set_on_node(name, stored),
            Some(store) => {
                let value = serde_json::to_string(&stored).unwrap_or_default();
                let change = SharedChange { name, is_cleared: mode.is_none(), value: &value };
                let known = lock(&self.modes.known).fleet.clone();
                match store.write_shared_table(TABLE, &known, Some(change)).await {
                    Ok(table) => self.absorb(&table, Some(name), true).await,
                    Err(error) => {
                        entry.error = Some(error.to_string());
                        let _ = self.record(&entry).await;
                        return Err(OverrideError::Store(error));
                    }
                }
            }
        }
        self.apply_overrides();
        Ok(outcome)
    }

    /// Reads the fleet's overrides, and applies new ones.
    pub(crate) async fn poll_fleet_modes(&self) -> Result<(), StoreError> {
        let Some(store) = self.gate.store().redis() else { return Ok(()) };
        let mut stored = store.shared_table(TABLE).await?;
        let known = lock(&self.modes.known).fleet.clone();
        let is_lost = stored.is_behind(&known);
        if is_lost {
            stored = store.write_shared_table(TABLE, &known, None).await?;
            tracing::warn!(
                "the store had lost mode overrides; this node wrote them back, and kept them in force"
            );
        }
        if is_lost || known.is_behind(&stored) {
            let _one_at_a_time = self.modes.change_lock.lock().await;
            self.absorb(&stored, None, is_lost).await;
            self.apply_overrides();
        }
        self.modes.is_read.store(true, Relaxed);
        Ok(())
    }

    /// Waits until the fleet's overrides were read once, so that a restarted node does not answer
    /// without them. Waits at most `within` for the store.
    pub(crate) fn wait_for_fleet_modes(&self, within: Duration) {
        const STEP: Duration = Duration::from_millis(5);
        let is_due = || !self.modes.is_read.load(Relaxed);
        let mut steps = within.as_millis() / STEP.as_millis();
        while !matches!(self.gate.store(), Storage::Memory(_)) && is_due() && steps > 0 {
            std::thread::sleep(STEP);
            steps -= 1;
        }
    }

    /// Applies later values of a table, each with a line in the audit log; `recorded` already has
    /// one. A value whose line cannot be written is retried later. `is_written`: the store has all
    /// that this node knows, except cleared names that made room.
    async fn absorb(&self, table: &SharedTable, recorded: Option<&str>, is_written: bool) {
        let mut later: Vec<(Box<str>, SharedValue)> = {
            let known = lock(&self.modes.known);
            let later = table.iter().filter(|(name, value)| known.fleet.is_before(name, value));
            later.map(|(name, value)| (name.into(), value.clone())).collect()
        };
        later.sort_by(|a, b| a.1.version.cmp(&b.1.version));
        let mut unrecorded = None;
        for (name, value) in later {
            let stored: Option<StoredOverride> = serde_json::from_str(&value.value).ok();
            if recorded != Some(&*name)
                && let Some(stored) = &stored
            {
                let (entry, _) = self.override_record(OverrideScope::Fleet, &name, stored);
                if let Err(why) = self.try_record(&entry).await {
                    unrecorded = Some(why);
                    continue;
                }
                let mode = stored.mode.as_deref().unwrap_or("cleared");
                tracing::info!(
                    limit = &*name,
                    mode,
                    by = stored.who.peer,
                    "mode override applied on all nodes"
                );
            }
            lock(&self.modes.known).fleet.merge(&name, &value);
        }
        if is_written {
            lock(&self.modes.known).fleet.forget_cleared(table);
        }
        self.report_unrecorded(unrecorded);
    }

    fn apply_overrides(&self) {
        let overrides = lock(&self.modes.known).for_gate();
        self.gate.set_overrides(overrides);
    }

    fn report_unrecorded(&self, why: Option<String>) {
        let was_logged = self.modes.is_unrecorded_logged.swap(why.is_some(), Relaxed);
        match why {
            Some(error) if !was_logged => {
                self.metrics.audit_failure();
                tracing::error!(error, "mode override not applied: the audit log is not writable");
                self.health
                    .degrade(SUBJECT, "mode override not applied: the audit log is not writable");
            }
            None if was_logged => self.health.clear(SUBJECT),
            _ => {}
        }
    }

    /// The audit line for a change, and the effect of the change on the limits that it covers.
    fn override_record(
        &self,
        scope: OverrideScope,
        name: &str,
        stored: &StoredOverride,
    ) -> (AuditEntry<'static>, OverrideOutcome) {
        let known = lock(&self.modes.known).clone();
        let next = known.after(scope, name, stored.mode());
        let (rules, configured) = (self.gate.rules(), self.gate.configured_modes());
        let covered = covered_limits(&rules, name, &configured);
        let after = |(limit, _, configured): &(&str, Mode, Mode)| {
            ModeOverride::deciding(&next, limit).map_or(*configured, |one| one.mode)
        };
        let mut own = known.node.iter().filter(|_| scope == OverrideScope::Fleet);
        let outcome = OverrideOutcome {
            before: common(covered.iter().map(|(_, mode, _)| *mode)),
            after: common(covered.iter().map(after)),
            is_masked: own
                .any(|(own, _)| covered.iter().any(|(limit, ..)| ModeOverride::covers(own, limit))),
            was_overridden: known.has(scope, name),
        };
        let shown = |mode: Option<Mode>, overridden: bool| {
            let differing = if covered.is_empty() { Value::Null } else { "mixed".into() };
            let mode = mode.map_or(differing, |mode| mode.word().into());
            json!({"mode": mode, "overridden": overridden})
        };
        let is_set = stored.mode.is_some();
        let entry = AuditEntry {
            time: rfc3339(self.clock.now_us()),
            who: stored.who.clone(),
            what: if is_set { "mode.set" } else { "mode.clear" },
            target: json!({"limit": name, "scope": scope}),
            before: shown(outcome.before, outcome.was_overridden),
            after: shown(outcome.after, is_set),
            error: None,
        };
        (entry, outcome)
    }
}

/// The limits that an override of this name covers, with the mode in effect and the mode in the
/// file.
fn covered_limits<'r>(
    rules: &'r Rules,
    name: &str,
    configured: &[Mode],
) -> Vec<(&'r str, Mode, Mode)> {
    let limits = rules.policy().limits().iter().enumerate();
    let limits = limits.filter(|(_, limit)| !limit.selector.is_candidate());
    let covered = limits.filter(|(_, limit)| ModeOverride::covers(name, &limit.name));
    // A reload may have happened in between; then the mode in effect is good enough.
    let file = |place: usize, mode| configured.get(place).copied().unwrap_or(mode);
    covered.map(|(place, limit)| (&*limit.name, limit.mode, file(place, limit.mode))).collect()
}

/// The mode, if all are equal.
fn common(mut modes: impl Iterator<Item = Mode>) -> Option<Mode> {
    let first = modes.next()?;
    modes.all(|mode| mode == first).then_some(first)
}
