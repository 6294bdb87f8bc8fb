//! The results of a replay.

use super::run::{Replayed, is_concurrency};
use crate::command::lab::keys::RefusedKey;
use crate::command::lab::plot::Series;
use crate::command::lab::{self, ambiguous_note, file_name, is_in_log};
use std::path::Path;
use tollgate::engine::limit::{Limit, Mode, OnMissing, Selector};
use tollgate_logs::{Field, InputStats};

/// The number of paths shown of requests that no limit matched.
const PATHS_SHOWN: usize = 5;

/// The results of a replay.
pub(crate) struct ReplayReport {
    pub(crate) config: String,
    pub(crate) input: InputStats,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    /// Requests that were answered with 400.
    pub(crate) ambiguous: u64,
    pub(crate) limits: Vec<LimitReport>,
    /// Requests that no limit matched, and their most frequent paths.
    pub(crate) unmatched: (u64, Vec<(String, u64)>),
    /// Notes on what the result does not show, and why.
    pub(crate) notes: Vec<String>,
    pub(crate) series: Series,
}

/// The results of one limit.
pub(crate) struct LimitReport {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) is_enforced: bool,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    /// The number of keys, and the number of those that were refused.
    pub(crate) keys: u64,
    pub(crate) keys_refused: u64,
    /// The key that was refused first.
    pub(crate) first: Option<KeyReport>,
    /// The keys that were refused most.
    pub(crate) most: Vec<KeyReport>,
}

/// The results of one key that was refused.
#[derive(Clone, Debug)]
pub(crate) struct KeyReport {
    pub(crate) key: String,
    pub(crate) refused: u64,
    pub(crate) requests: u64,
    pub(crate) first_us: u64,
    pub(crate) last_us: u64,
    pub(crate) limited_us: u64,
}

impl KeyReport {
    fn new(key: &RefusedKey<'_>) -> Self {
        let refusals = key.refusals;
        Self {
            key: refusals.key.clone(),
            refused: refusals.refused,
            requests: refusals.refused + key.admitted,
            first_us: refusals.first_us,
            last_us: refusals.last_us,
            limited_us: refusals.limited_us,
        }
    }
}

impl Replayed<'_> {
    /// Returns the results, with up to `keys` keys of each limit.
    pub(crate) fn report(&self, config: &Path, keys: usize) -> ReplayReport {
        let policy = self.loaded.rules.policy();
        let mut notes = self.input_notes();
        let mut limits = Vec::new();
        let panels = self.loaded.panels();
        for ((limit, panel), tally) in policy.limits().iter().zip(panels).zip(&self.tally.limits) {
            notes.extend(self.key_note(limit));
            let (count, is_inexact) = tally.keys.len();
            if is_inexact {
                let name = &limit.name;
                notes.push(format!(
                    "{name}: too many keys to count separately; their number is a guess"
                ));
            }
            let mut refused = tally.keys.refused();
            let first = refused.first().map(KeyReport::new);
            let keys_refused = refused.len() as u64;
            // The sort is stable: of keys with equal refusals, the one refused first stays first.
            refused.sort_by_key(|key| std::cmp::Reverse(key.refusals.refused));
            limits.push(LimitReport {
                name: limit.name.to_string(),
                description: panel.description,
                is_enforced: limit.mode == Mode::Enforce,
                admitted: tally.admitted,
                refused: tally.refused,
                keys: count,
                keys_refused,
                first,
                most: refused.iter().take(keys).map(KeyReport::new).collect(),
            });
        }
        let unmatched = &self.tally.unmatched;
        ReplayReport {
            config: file_name(config),
            input: self.stats.clone(),
            admitted: self.tally.admitted,
            refused: self.tally.refused,
            ambiguous: self.tally.ambiguous,
            limits,
            unmatched: (unmatched.requests, unmatched.most(PATHS_SHOWN)),
            notes,
            series: self.tally.plot.series(),
        }
    }

    /// Explains why a limit did not apply as it would to live traffic.
    fn key_note(&self, limit: &Limit) -> Option<String> {
        let name = &limit.name;
        if limit.mode == Mode::Off || limit.selector != Selector::Match {
            return None;
        }
        let is_known =
            |attribute: &str| is_in_log(&self.loaded.rules, attribute, &self.options, &self.stats);
        let mut keys = limit.keys();
        let is_keyed = keys.any(|key| key.iter().all(|attribute| is_known(attribute)));
        if !is_keyed {
            let missing = limit.keys().flatten().find(|attribute| !is_known(attribute))?;
            let effect = match limit.on_missing {
                OnMissing::Refuse => "so the limit refused every request",
                OnMissing::Share => "so all requests shared one count",
                _ => "so the limit never applied",
            };
            return Some(format!(
                "{name}: could not be keyed: the log has no `{missing}`, {effect}; if a column has it: \
                 --attribute {missing}=COLUMN"
            ));
        }
        if is_concurrency(limit) && self.stats.with_duration == 0 {
            return Some(format!(
                "{name}: the log has no response times, so each request held its slot for the whole `ttl`"
            ));
        }
        if !limit.on_response.is_empty() {
            return Some(format!("{name}: `on_response` was not applied"));
        }
        None
    }

    /// Returns notes about parts of the log that could not be used.
    fn input_notes(&self) -> Vec<String> {
        let stats = &self.stats;
        let mut notes = Vec::new();
        notes.extend(ambiguous_note(self.tally.ambiguous));
        if stats.present(Field::Ip) == 0 && self.uses("ip") {
            notes.push("the log has no addresses".into());
        }
        notes.extend(lab::input_notes(stats));
        notes
    }

    fn uses(&self, attribute: &str) -> bool {
        self.loaded.rules.policy().attribute(attribute).is_some()
    }
}
