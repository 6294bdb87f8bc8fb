//! Loads a file into a gate over the memory store, with a description of each limit.

use super::plot::{Panel, Plot};
use super::unreadable;
use crate::command::Stop;
use std::path::Path;
use tollgate::engine::{Gate, GateSetup, RulesGuard, limit::Mode};
use tollgate_core::header::Profile;
use tollgate_policy::settings::{Settings, Store, TierSource};
use tollgate_policy::{Compiled, Diagnostic, TierMap, TierRules, raw};
use tollgate_store::{MemoryStore, memory::MemoryOptions};

/// A fixed seed: a run must give the same results each time, so hash keys and random numbers of
/// shedders must repeat.
const SEED: u64 = 0;
/// The most shards. One thread decides, and more shards would only spread its keys over more of the
/// cache. This number leaves 60 bits of hash for a key: among ten million keys, the probability of
/// any collision is 4e-5. A small `max_bytes` gives fewer shards, as on a node.
const SHARDS_MAX: usize = 256;

/// A loaded policy.
pub(crate) struct Loaded {
    pub(crate) gate: Gate,
    pub(crate) rules: RulesGuard,
    pub(crate) settings: Settings,
    /// The text above each limit's panel.
    descriptions: Vec<String>,
}

/// Loads the policy. With `keys`, every row has a hash of its key.
pub(crate) fn load(path: &Path, keys: bool) -> Result<Loaded, Stop> {
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
    load_text(path, &bytes, keys)
}

/// [`load`] for a file that is read already; `path` is its name.
pub(crate) fn load_text(path: &Path, bytes: &[u8], keys: bool) -> Result<Loaded, Stop> {
    let compiled = tollgate_policy::compile(bytes).map_err(|errors| failed(path, &errors))?;
    let limits = compiled.file.limits.as_ref();
    let raw = |entry: &usize| limits.and_then(|limits| limits.value.get(*entry));
    let descriptions = compiled
        .entries
        .iter()
        .map(|entry| raw(entry).map_or_else(String::new, |entry| describe(&entry.value)))
        .collect();
    let mut setup = GateSetup::of(&compiled).with_seed(SEED);
    let rules = TierRules::of(&compiled);
    let Compiled { settings, .. } = compiled;
    // A simulation has no Redis, so clients whose tiers are in Redis have the default tier.
    if let Some(TierSource::File { path: name, .. }) = &settings.tiers.source {
        setup = setup.with_tiers(tier_map(&path.with_file_name(&**name), &rules)?);
    }
    if keys {
        setup = setup.with_buckets();
    }
    let mut store = MemoryOptions::default().seed(SEED).shards_max(SHARDS_MAX);
    if let Store::Memory { max_bytes } = settings.store {
        store = store.max_bytes(max_bytes);
    }
    let gate = Gate::new(setup, MemoryStore::new(store))
        .map_err(|error| Stop::Failed(format!("{}: {error}", path.display())))?;
    Ok(Loaded { rules: gate.rules(), gate, settings, descriptions })
}

fn tier_map(path: &Path, rules: &TierRules) -> Result<TierMap, Stop> {
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
    TierMap::read(&bytes, rules).map_err(|errors| failed(path, &errors))
}

fn failed(path: &Path, errors: &[Diagnostic]) -> Stop {
    let file = path.display().to_string();
    let text: String = errors.iter().map(|error| error.render(&file).to_string()).collect();
    Stop::Failed(text.trim_end().into())
}

impl Loaded {
    /// The configured header profiles.
    pub(crate) fn profiles(&self) -> Vec<Profile> {
        self.settings.headers.iter().filter_map(|name| Profile::parse(name)).collect()
    }

    /// Creates a plot with a panel for each limit.
    pub(crate) fn plot(&self) -> Plot {
        Plot::new(self.panels())
    }

    /// The name and description of each limit.
    pub(crate) fn panels(&self) -> Vec<Panel> {
        let limits = self.rules.policy().limits().iter().zip(&self.descriptions);
        let panels = limits.map(|(limit, description)| {
            // If the limit is named after its algorithm, the description does not repeat it.
            let again = format!("{}, ", limit.name);
            let mut description =
                description.strip_prefix(&again).unwrap_or(description).to_owned();
            if !limit.key.is_empty() {
                let keys: Vec<String> = limit.keys().map(|key| key.join(" and ")).collect();
                description.push_str(&format!(", by {}", keys.join(", else ")));
            }
            if limit.mode == Mode::Shadow {
                description.push_str(", in shadow");
            }
            Panel::new(limit.name.to_string(), description)
        });
        panels.collect()
    }
}

/// Describes the algorithm and the parameters, as written in the file.
fn describe(entry: &raw::Limit) -> String {
    let mut text = entry.algorithm().word().to_owned();
    if let Some(rate) = &entry.rate {
        text.push_str(&format!(", {}", &*rate.value));
    }
    if let Some(zone) = &entry.time_zone {
        text.push_str(&format!(", {}", &*zone.value));
    }
    if let Some(burst) = &entry.burst {
        text.push_str(&format!(", burst {}", burst.value));
    }
    if let Some(queue) = &entry.queue {
        text.push_str(&format!(", queue {}", queue.value));
    }
    if let Some(ttl) = &entry.ttl {
        text.push_str(&format!(", ttl {}", &*ttl.value));
    }
    text
}
