//! Monitor: checks the store at intervals, with or without traffic, and updates the node's health.

use super::Storage;
use crate::Node;
use std::future::pending;
use std::time::Duration;
use tokio::time::sleep;
use tollgate::StoreError;
use tollgate::store::Store;
use tollgate::store::{Answers, Charge, ChargeMode, ParamsId, Request, StoreCall};
use tollgate_core::algorithm::FixedWindow;
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_net::Health;
use tollgate_policy::limit::{self, OnStoreFailure};

/// The subject of store problems in `/readyz`.
const STORE: &str = "store";
const LEASES: &str = "leases";
const TASKS: &str = "store tasks";
const HEALTHY_INTERVAL: Duration = Duration::from_secs(1);
/// Reads of the fleet's mode overrides per check.
const MODE_READS_PER_CHECK: u32 = 4;
const FAILING_INTERVAL: Duration = Duration::from_millis(250);
/// Failed checks in a row that count: a single one may be chance.
const FAILURES_MIN: u32 = 2;

/// Reports the state of the store in the node's health. Never returns.
pub(crate) async fn monitor(node: &Node) {
    if let Storage::Memory(_) = node.gate.store() {
        return pending().await;
    }
    let (mut outage, mut died) = (Outage::default(), 0);
    let mut is_new = true;
    loop {
        report_task_restarts(&node.health, node.gate.store().task_restarts(), &mut died);
        report_grace_period(&node.health, node.gate.store().leases().in_grace_period);
        match check_store(node).await {
            Ok(()) => {
                if is_new {
                    is_new = log_server_info(node).await.is_err();
                }
                if outage.record_success() {
                    tracing::info!("the store answers again");
                }
                report_breaker(&node.health, node.gate.store().is_breaker_open());
            }
            Err(error) => {
                let store = node.gate.store();
                let is_logged =
                    outage.record_failure(store.is_breaker_open(), store.breaker_errors());
                // A store that has never answered counts as down.
                if is_new || outage.failures >= FAILURES_MIN {
                    report_failure(node, &error);
                }
                if !is_logged {
                    tracing::error!(%error, "the store does not answer; each limit follows its on_store_failure");
                }
            }
        }
        match outage.failures {
            0 => read_tables_until_next_check(node).await,
            _ => sleep(FAILING_INTERVAL).await,
        }
    }
}

/// Shares the key secret and top keys, frees slots of ended reservations, and reads mode overrides
/// several times. The health check reports failures of the store, so this function does not.
async fn read_tables_until_next_check(node: &Node) {
    let _ = node.share_figures().await;
    let _ = release_ended_reservations(node).await;
    for _ in 0..MODE_READS_PER_CHECK {
        let _ = node.poll_fleet_modes().await;
        sleep(HEALTHY_INTERVAL / MODE_READS_PER_CHECK).await;
    }
}

/// Frees the slots of reservations that other nodes ended.
async fn release_ended_reservations(node: &Node) -> Result<(), StoreError> {
    let Some(store) = node.gate.store().redis() else { return Ok(()) };
    for id in node.gate.reservations_to_ask(node.clock.now_us()) {
        let now_us = node.clock.now_us();
        if !store.is_reservation_open(now_us, &id).await? {
            node.gate.ended_elsewhere(now_us, &id);
        }
    }
    Ok(())
}

/// Failed checks in a row. The log has one line for the start and one for the end of an outage:
/// from the circuit breaker, or from the check if no breaker opened.
#[derive(Debug, Default)]
struct Outage {
    failures: u32,
    is_logged: bool,
}

impl Outage {
    /// Records a failed check. Returns whether the outage is logged or will be: the checks alone
    /// open the circuit breaker after `breaker_errors` failures.
    fn record_failure(&mut self, is_breaker_open: bool, breaker_errors: u32) -> bool {
        self.failures = self.failures.saturating_add(1);
        let opens = self.failures < breaker_errors.saturating_add(FAILURES_MIN);
        let is_logged = self.is_logged || is_breaker_open || opens;
        self.is_logged |= !is_logged;
        is_logged
    }

    /// Records a successful check. Returns whether to log it.
    fn record_success(&mut self) -> bool {
        std::mem::take(self).is_logged
    }
}

fn report_grace_period(health: &Health, in_grace_period: bool) {
    if in_grace_period {
        health.degrade(LEASES, "grace period: the store is new or may have lost leases");
    } else {
        health.clear(LEASES);
    }
}

/// Reports an open circuit breaker. One server of a cluster answered the check, but others may be
/// down. Then `on_store_failure` decides for their keys.
fn report_breaker(health: &Health, is_breaker_open: bool) {
    if is_breaker_open {
        health.degrade(STORE, "circuit breaker open for a part of the store; not calling it");
    } else {
        health.clear(STORE);
    }
}

/// Makes the node not ready until the next check, if a task of the store panicked and restarted.
fn report_task_restarts(health: &Health, now: usize, before: &mut usize) {
    if std::mem::replace(before, now) == now {
        health.clear(TASKS);
    } else {
        health.fail(TASKS, "a task panicked and restarted; see the log");
    }
}

/// Logs the version of the store, and problems with its configuration.
async fn log_server_info(node: &Node) -> Result<(), StoreError> {
    let Some(report) = node.gate.store().probe(false).await else { return Ok(()) };
    let report = report?;
    let version = report.version.as_deref().unwrap_or("of unknown version");
    let mode = report.mode.as_deref().unwrap_or("unknown");
    tracing::info!(version, mode, "the store answers");
    let missing: Vec<_> =
        report.missing.iter().filter(|name| name.split(' ').next() != Some("INFO")).collect();
    if !missing.is_empty() {
        tracing::error!(
            ?missing,
            "the store refuses commands that tollgate needs; see the rights in docs/operations.md"
        );
    }
    if !report.keeps_counts() {
        let policy = report.eviction.as_deref().unwrap_or_default();
        tracing::warn!(
            policy,
            "the store evicts counts when its memory is full; set maxmemory-policy to noeviction"
        );
    }
    Ok(())
}

/// Whether the store decides. One server of a cluster is enough: `on_store_failure` decides for the
/// keys of the others.
async fn check_store(node: &Node) -> Result<(), StoreError> {
    let keys: [&[u8]; 8] = [b"tollgate", b"1", b"2", b"3", b"4", b"5", b"6", b"7"];
    let count = if node.gate.store().is_cluster() { keys.len() } else { 1 };
    let mut checked = Ok(());
    for key in &keys[..count] {
        checked = check_key(node, key).await;
        if checked.is_ok() {
            break;
        }
    }
    checked
}

/// Charges a unit to an unused key, like any decision: a read-only store must fail the check.
async fn check_key(node: &Node, key: &[u8]) -> Result<(), StoreError> {
    let rate = Rate::try_new(1, 1_000).unwrap_or(Rate::NOTHING);
    let params = LimitParams::FixedWindow(FixedWindow::new(rate));
    let charge = Charge {
        limit: 0,
        key,
        params: &params,
        params_id: ParamsId::default(),
        cost: 1,
        mode: ChargeMode::Enforce,
        penalty: None,
    };
    let requests = [Request { charges: &[charge], intent: Intent::Take }];
    node.gate
        .store()
        .call(node.clock.now_us(), StoreCall::Decide(&requests), &mut Answers::default())
        .await
}

/// Reports that the store failed. The node is not ready only if every enforced limit fails closed.
/// Otherwise it can still admit requests, and rejecting traffic would cause an outage.
fn report_failure(node: &Node, error: &StoreError) {
    let rules = node.gate.rules();
    let limits = rules.policy().limits().iter();
    let mut enforced = limits.filter(|limit| limit.mode == limit::Mode::Enforce).peekable();
    let is_closed = enforced.peek().is_some()
        && enforced.all(|limit| limit.on_store_failure == OnStoreFailure::Closed);
    // `/readyz` is public, so the store's own message stays in the log. The error that opened the
    // circuit breaker says more than "not called".
    let kind = node.gate.store().outage().unwrap_or(error.kind);
    let text = StoreError::new(kind, "").to_string();
    if is_closed {
        node.health.fail(STORE, text);
    } else {
        node.health.degrade(STORE, text);
    }
}

#[cfg(test)]
mod tests;
