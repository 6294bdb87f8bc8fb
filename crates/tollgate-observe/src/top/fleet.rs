//! Top keys of all nodes of a store.
//!
//! Every ten seconds each node writes its lists to the store. A reader adds the lists up. A key
//! listed by a node has between `units - error` and `units` there. A key not listed has between
//! zero and the node's `unlisted_max`. So the bounds of the sums hold for every key.

use super::view::{CountedNode, TopKeyView, TopLimitView, TopQuery, TopView};
use super::{TopMeasure, TopWindow};
use crate::keys::ShownKey;
use serde::{Deserialize, Serialize};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tollgate::StoreError;
use tollgate::store::redis::RedisStore;
use tollgate_policy::hex;

/// The topic of the reports in the store.
const TOPIC: &str = "top";
const PUBLISH_EVERY_US: u64 = 10_000_000;
/// Lifetime of a report: a node that misses two reports is gone.
const LIFETIME: Duration = Duration::from_secs(30);
/// Keys per list in a report. The next smaller count is tried if the report is too long.
const COUNTS: [usize; 5] = [32, 16, 8, 4, 1];
const REPORT_BYTES_MAX: usize = 256 * 1024;
const WINDOWS: [TopWindow; 2] = [TopWindow::Minute, TopWindow::Hour];

/// The top-key reports of this node and of the other nodes of its store.
#[derive(Debug)]
pub struct FleetTop {
    /// A random name of this node.
    node: String,
    published_us: AtomicU64,
}

/// The report of a node in the store.
#[derive(Debug, Serialize, Deserialize)]
struct TopReport {
    to: String,
    missed: u64,
    /// Lists by window and measure: `1m/refused`.
    lists: BTreeMap<String, TopList>,
}

#[derive(Debug, Serialize, Deserialize)]
struct TopList {
    from: String,
    limits: Vec<TopLimitView>,
}

impl Default for FleetTop {
    fn default() -> Self {
        let mut bytes = [0; 8];
        // Without random numbers all nodes share a name, and the latest report replaces the others.
        let _ = getrandom::fill(&mut bytes);
        Self { node: hex::lower(&bytes), published_us: AtomicU64::new(0) }
    }
}

fn list_name(by: TopMeasure, window: TopWindow) -> String {
    format!("{}/{}", window.name(), by.name())
}

impl FleetTop {
    /// Writes the lists of this node to a shared store, if the last report is old enough.
    ///
    /// # Errors
    ///
    /// If the store cannot be asked.
    pub async fn publish(
        &self,
        store: &RedisStore,
        now_us: u64,
        view: impl Fn(&TopQuery) -> TopView,
    ) -> Result<(), StoreError> {
        let last_us = self.published_us.load(Relaxed);
        if now_us / PUBLISH_EVERY_US == last_us / PUBLISH_EVERY_US {
            return Ok(());
        }
        self.published_us.store(now_us, Relaxed);
        store.publish_report(TOPIC, &self.node, &report(view), LIFETIME).await
    }

    /// The top keys of all nodes of the store; with the memory store, of this node.
    ///
    /// # Errors
    ///
    /// If the store cannot be asked.
    pub async fn view(
        &self,
        store: Option<&RedisStore>,
        wanted: &TopQuery,
        view: impl Fn(&TopQuery) -> TopView,
    ) -> Result<TopView, StoreError> {
        let mut view = view(&TopQuery { count: usize::MAX, ..wanted.clone() });
        view.nodes = vec![CountedNode { node: self.node.clone(), to: view.to.clone() }];
        view.scope = "fleet";
        let mut nodes = vec![view.limits];
        view.limits = Vec::new();
        let reports = match store {
            Some(store) => store.reports(TOPIC).await?,
            None => Vec::new(),
        };
        for report in reports.into_iter().filter(|report| report.node != self.node) {
            // A node of another version may write reports that this version cannot read.
            let Ok(mut read) = serde_json::from_slice::<TopReport>(&report.report) else {
                continue;
            };
            let Some(list) = read.lists.remove(&list_name(wanted.by, wanted.window)) else {
                continue;
            };
            view.from = view.from.min(list.from);
            view.missed = view.missed.saturating_add(read.missed);
            view.nodes.push(CountedNode { node: report.node, to: read.to });
            nodes.push(list.limits);
        }
        let is_wanted =
            |limit: &TopLimitView| wanted.limit.as_deref().is_none_or(|name| *name == *limit.name);
        for limits in &mut nodes {
            limits.retain(is_wanted);
        }
        view.limits = merge(nodes);
        view.limits.iter_mut().for_each(|limit| limit.truncate(wanted.count));
        Ok(view)
    }
}

/// Serializes the lists of this node, shortened to the size limit of a report.
fn report(view: impl Fn(&TopQuery) -> TopView) -> Vec<u8> {
    let mut report = TopReport { to: String::new(), missed: 0, lists: BTreeMap::new() };
    for window in WINDOWS {
        for by in TopMeasure::ALL {
            let wanted = TopQuery { by, window, limit: None, count: COUNTS[0] };
            let TopView { from, to, missed, limits, .. } = view(&wanted);
            (report.to, report.missed) = (to, missed);
            report.lists.insert(list_name(by, window), TopList { from, limits });
        }
    }
    for count in COUNTS {
        let limits = report.lists.values_mut().flat_map(|list| &mut list.limits);
        limits.for_each(|limit| limit.truncate(count));
        let text = serde_json::to_vec(&report).unwrap_or_default();
        if text.len() <= REPORT_BYTES_MAX {
            return text;
        }
    }
    Vec::new()
}

/// Adds up the lists of all nodes.
fn merge(nodes: Vec<Vec<TopLimitView>>) -> Vec<TopLimitView> {
    let mut by_limit: BTreeMap<Box<str>, Vec<TopLimitView>> = BTreeMap::new();
    for limit in nodes.into_iter().flatten() {
        by_limit.entry(limit.name.clone()).or_default().push(limit);
    }
    by_limit.into_iter().map(|(name, lists)| merge_limit(name, lists)).collect()
}

fn merge_limit(name: Box<str>, lists: Vec<TopLimitView>) -> TopLimitView {
    let sum =
        |figure: fn(&TopLimitView) -> u64| lists.iter().map(figure).fold(0, u64::saturating_add);
    let (units, unlisted_max) = (sum(|list| list.units), sum(|list| list.unlisted_max));
    // For each key: the sum over the nodes that list it, and the sum of their `unlisted_max`.
    let mut keys: HashMap<ShownKey, (TopKeyView, u64)> = HashMap::new();
    for list in lists {
        for key in list.keys {
            match keys.entry(key.key.clone()) {
                Entry::Vacant(free) => drop(free.insert((key, list.unlisted_max))),
                Entry::Occupied(mut known) => {
                    let (known, listing) = known.get_mut();
                    *listing = listing.saturating_add(list.unlisted_max);
                    known.add(key);
                }
            }
        }
    }
    let bounded = keys.into_values().map(|(mut key, listing)| {
        let elsewhere_max = unlisted_max.saturating_sub(listing);
        key.units = key.units.saturating_add(elsewhere_max);
        key.error = key.error.saturating_add(elsewhere_max);
        key
    });
    let mut keys: Vec<TopKeyView> = bounded.collect();
    keys.sort_by(|a, b| b.units.cmp(&a.units).then_with(|| a.key.0.cmp(&b.key.0)));
    TopLimitView { name, units, unlisted_max, keys }
}

impl TopKeyView {
    /// Adds the units of another node. The other figures come from the later decision.
    fn add(&mut self, other: Self) {
        self.units = self.units.saturating_add(other.units);
        self.error = self.error.saturating_add(other.error);
        if other.last > self.last {
            (self.limit, self.remaining, self.last) = (other.limit, other.remaining, other.last);
        }
    }
}

#[cfg(test)]
mod tests;
