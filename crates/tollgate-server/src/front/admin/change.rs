//! Changes by operators. The audit log gets a line before each change. Changes run one at a time,
//! so `before` in that line is true.

use super::decode::AdminBody;
use super::encode::{KeyView, TierView};
use super::watch::top::{self, ResolvedAttribute};
use super::{Admin, AdminResponse, json_response};
use crate::front::problem::Problem;
use crate::node::modes::{OverrideChange, OverrideError, OverrideOutcome, OverrideScope};
use hyper::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tollgate::StoreError;
use tollgate::engine::Rules;
use tollgate::store::Store;
use tollgate_observe::audit::{AuditActor, AuditEntry};
use tollgate_observe::time::rfc3339;
use tollgate_policy::facts::{Facts, digest};
use tollgate_policy::limit::Mode;
use tollgate_policy::settings::AmbiguousPaths;

/// A change of a key's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyChange {
    Reset,
    Block { for_us: u64 },
    Unblock,
}

/// Operators may name any key that a listener with `match-all` can count.
pub(super) const ANY_PATH: AmbiguousPaths = AmbiguousPaths::MatchAll;

impl KeyChange {
    const fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Block { .. } => "block",
            Self::Unblock => "unblock",
        }
    }
}

impl Admin {
    /// Shows the state of a key under every limit.
    pub(super) async fn inspect(&self, body: &AdminBody) -> Result<AdminResponse, Problem> {
        let rules = self.node.gate.rules();
        let limit = require_limit(&rules, body.limit.as_deref())?;
        let now_us = self.node.clock.now_us();
        let attributes = top::resolve_hashes(&self.node, &rules, &body.attributes)?;
        let mut facts = facts(&rules, &attributes, ANY_PATH)?;
        self.node.identify(&rules, &mut facts, now_us).await;
        let mut views = self.inspect_key(&rules, &facts, now_us, limit).await?;
        let value = |name: &str| display_value(&rules, &facts, name);
        let unlimited = self.node.gate.unlimited(&rules, &facts, limit);
        views.extend(
            unlimited.into_iter().map(|limit| KeyView::unlimited(limit, &limit.key, value)),
        );
        views.sort_by_key(|view| rules.policy().position(view.name()));
        let tier = TierView::new(&rules, &facts, &self.node.file().settings);
        Ok(json_response(StatusCode::OK, &json!({"tier": tier, "limits": views})))
    }

    /// Changes the state of a key. Without `limit`, changes the limits whose key has exactly the
    /// given attributes. Limits with one shared bucket are left out: blocking one user must not
    /// block all.
    pub(super) async fn change_key(
        &self,
        operator: &AuditActor,
        body: &AdminBody,
        change: KeyChange,
    ) -> Result<AdminResponse, Problem> {
        let _one_at_a_time = self.change_lock.lock().await;
        let (gate, clock) = (&self.node.gate, &self.node.clock);
        let (rules, now_us) = (gate.rules(), clock.now_us());
        let named = require_limit(&rules, body.limit.as_deref())?;
        let attributes = top::resolve_hashes(&self.node, &rules, &body.attributes)?;
        let mut facts = facts(&rules, &attributes, ANY_PATH)?;
        self.node.identify(&rules, &mut facts, now_us).await;
        let mut before = self.inspect_key(&rules, &facts, now_us, named).await?;
        let is_whole = |key: &BTreeMap<&str, String>| {
            !key.is_empty() && key.values().all(|value| !value.is_empty())
        };
        before.retain(|view| named.is_some() || is_whole(view.key()));
        if before.is_empty() {
            let why = "no limit has exactly these key attributes; give all attributes of a limit's key, or name a `limit` that is not off";
            return Err(other_attributes(why));
        }
        if !attributes.is_empty() {
            require_used_attributes(&before)?;
        }
        let until_us = match change {
            KeyChange::Block { for_us } => Some(now_us.saturating_add(for_us)),
            KeyChange::Reset | KeyChange::Unblock => None,
        };
        let names: Vec<&str> = before.iter().map(KeyView::name).collect();
        // The later of two blocks counts, so the response has the end of the last block.
        let expected_us = until_us.max(until_us.and(last_block(&before)));
        let after = match change {
            KeyChange::Reset => Value::Null,
            _ => json!({"blocked_until": expected_us.map(rfc3339)}),
        };
        // Attributes in the form of keys: an API key is hashed.
        let shown: BTreeMap<&str, String> =
            before.iter().flat_map(|view| view.key().clone()).collect();
        let target = json!({"limits": names, "attributes": shown});
        let mut entry = AuditEntry {
            time: String::new(),
            who: operator.clone(),
            what: change.name(),
            target,
            before: json!(before),
            after,
            error: None,
        };
        self.write_audit(&mut entry).await?;
        for name in &names {
            let done = match change {
                KeyChange::Reset => gate.reset(&rules, clock.now_us(), &facts, Some(name)).await,
                _ => gate.block(&rules, now_us, &facts, Some(name), until_us).await,
            };
            if let Err(error) = done {
                // The first line announced more than happened.
                entry.error = Some(error.to_string());
                let _ = self.write_audit(&mut entry).await;
                return Err(store_problem(&error));
            }
        }
        let mut response = json!({"limits": names});
        if until_us.is_some() {
            let mut now = self.inspect_key(&rules, &facts, now_us, named).await.unwrap_or_default();
            now.retain(|view| names.contains(&view.name()));
            response["blocked_until"] = last_block(&now).or(expected_us).map(rfc3339).into();
        }
        Ok(json_response(StatusCode::OK, &response))
    }

    /// Overrides the mode of limits, or with `None` clears an override.
    pub(super) async fn change_mode(
        &self,
        operator: &AuditActor,
        name: &str,
        scope: Option<OverrideScope>,
        mode: Option<Mode>,
    ) -> Result<AdminResponse, Problem> {
        let is_shared = self.node.gate.store().is_shared();
        let default = if is_shared { OverrideScope::Fleet } else { OverrideScope::Node };
        let scope = scope.unwrap_or(default);
        let change = OverrideChange { name, mode, scope, who: operator.clone() };
        let OverrideOutcome { before, after, is_masked, was_overridden } =
            self.node.change_override(&change).await.map_err(|error| match error {
                OverrideError::UnknownLimit => no_such_limit(&self.node.gate.rules(), name),
                error => override_problem(&error),
            })?;
        let word = |mode: Option<Mode>| mode.map_or("mixed", Mode::word);
        let mut response = json!({
            "name": name,
            "scope": scope,
            "before": word(before),
            "after": word(after),
            "overridden": mode.is_some(),
        });
        if mode.is_none() {
            response["cleared"] = was_overridden.into();
        }
        let note = match (is_shared, is_masked) {
            (false, _) => Some(
                "the memory store has no other nodes: the override is for this node, until it is cleared or the node ends",
            ),
            (_, true) => {
                Some("an override of this node takes precedence; clear it with `scope=node`")
            }
            (true, false) => None,
        };
        if let Some(note) = note {
            response["note"] = note.into();
        }
        Ok(json_response(StatusCode::OK, &response))
    }

    /// Reloads the policy file. The result is a second line in the audit log.
    pub(super) async fn reload(&self, operator: &AuditActor) -> Result<AdminResponse, Problem> {
        let generation = || self.node.gate.rules().generation();
        let mut entry = AuditEntry {
            time: String::new(),
            who: operator.clone(),
            what: "reload",
            target: Value::Null,
            before: json!({"generation": generation()}),
            after: Value::Null,
            error: None,
        };
        self.write_audit(&mut entry).await?;
        let reloaded = self.control.reload().await;
        entry.what = "reload.done";
        entry.after = json!({"generation": generation()});
        entry.error = reloaded.as_ref().err().map(ToString::to_string);
        let recorded = self.write_audit(&mut entry).await;
        match reloaded {
            Ok(()) => {
                recorded?;
                Ok(json_response(StatusCode::OK, &entry.after))
            }
            Err(failure) => {
                let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, failure.message);
                let found = serde_json::to_value(&failure.diagnostics).unwrap_or_default();
                Err(problem.with_diagnostics(found))
            }
        }
    }

    async fn inspect_key<'r>(
        &self,
        rules: &'r Rules,
        facts: &Facts<'_>,
        now_us: u64,
        limit: Option<&str>,
    ) -> Result<Vec<KeyView<'r>>, Problem> {
        let inspected = self.node.gate.inspect(rules, now_us, facts, limit).await;
        let inspected = inspected.map_err(|error| store_problem(&error))?;
        let value = |name: &str| display_value(rules, facts, name);
        Ok(inspected.iter().map(|one| KeyView::new(one, now_us, value)).collect())
    }

    /// Writes a line of the audit log, with the present time.
    async fn write_audit(&self, entry: &mut AuditEntry<'static>) -> Result<(), Problem> {
        entry.time = rfc3339(self.node.clock.now_us());
        self.node.record(entry).await.map_err(|why| unrecorded(&why))
    }
}

/// The end of the last block.
fn last_block(views: &[KeyView<'_>]) -> Option<u64> {
    views.iter().filter_map(KeyView::blocked_until_us).max()
}

/// Refuses `user=42` for a limit that counts all requests together: the change would be for
/// everybody.
fn require_used_attributes(views: &[KeyView<'_>]) -> Result<(), Problem> {
    let Some(view) = views.iter().find(|view| view.key().values().all(String::is_empty)) else {
        return Ok(());
    };
    let limit = view.name();
    Err(other_attributes(&format!(
        "the key of `{limit}` has none of these attributes; give those that `inspect` shows, or none for the requests that have none"
    )))
}

/// The error for attributes that are not those of a key.
fn other_attributes(why: &str) -> Problem {
    let detail = format!("nothing changed: {why}");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).at("attributes")
}

/// The limit's name, if a limit has it.
pub(super) fn require_limit<'a>(
    rules: &Rules,
    limit: Option<&'a str>,
) -> Result<Option<&'a str>, Problem> {
    match limit {
        Some(name) if !rules.policy().nameable_limits().any(|(_, limit)| *limit.name == *name) => {
            Err(no_such_limit(rules, name).at("limit"))
        }
        other => Ok(other),
    }
}

pub(super) fn no_such_limit(rules: &Rules, name: &str) -> Problem {
    const SHOWN: usize = 10;
    let mut limits = rules.policy().nameable_limits();
    let known: Vec<String> =
        limits.by_ref().take(SHOWN).map(|(_, limit)| format!("`{}`", limit.name)).collect();
    let more = if limits.next().is_some() { ", ..." } else { "" };
    let name = name.escape_debug();
    let detail = match &*known {
        [] => format!("no limit is called `{name}`; the policy has none"),
        _ => format!("no limit is called `{name}`; there are {}{more}", known.join(", ")),
    };
    Problem::new(StatusCode::NOT_FOUND, detail).at("name")
}

/// The facts of a request; `paths` sets how its path is read.
pub(super) fn facts<'r>(
    rules: &'r Rules,
    attributes: &'r [ResolvedAttribute],
    paths: AmbiguousPaths,
) -> Result<Facts<'r>, Problem> {
    let mut facts = rules.facts(Default::default());
    facts.set_ambiguous_paths(paths);
    for ResolvedAttribute { name, value, is_canonical } in attributes {
        let set =
            if *is_canonical { facts.set_canonical(name, value) } else { facts.set(name, value) };
        set.map_err(|error| Problem::bad(&format!("attributes.{name}"), error.to_string()))?;
    }
    Ok(facts)
}

/// The value of an attribute for display: a secret as its digest.
fn display_value(rules: &Rules, facts: &Facts<'_>, name: &str) -> Option<String> {
    let value = facts.get(name)?;
    Some(if rules.http_policy().holds_secret(name) { digest(&value) } else { value.into() })
}

fn store_problem(error: &StoreError) -> Problem {
    Problem::unavailable(error.to_string())
}

fn unrecorded(why: &str) -> Problem {
    Problem::unavailable(format!("nothing changed: {why}"))
}

fn override_problem(error: &OverrideError) -> Problem {
    match error {
        OverrideError::UnknownLimit | OverrideError::UnusableName => Problem::bad(
            "name",
            "a name for the fleet has at most 1024 bytes and no control characters; use `scope=node`",
        ),
        OverrideError::NotShared => {
            let detail =
                "the memory store has no other nodes; leave `scope` out, or write `scope=node`";
            Problem::new(StatusCode::CONFLICT, detail).at("scope")
        }
        OverrideError::Unrecorded(why) => unrecorded(why),
        OverrideError::Store(error) => Problem::unavailable(format!(
            "{error}; the change may still have reached the store, see `admin policy`; `scope=node` changes this node without the store"
        )),
    }
}
