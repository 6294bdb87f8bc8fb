//! Differences between the decisions of two policies: by request, limit, tier and key.

use crate::command::lab::keys::shown_key;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tollgate::engine::{Rules, Verdict};
use tollgate_logs::InputStats;
use tollgate_policy::facts::Facts;

/// The most keys that are counted separately.
const KEYS_MAX: usize = 1 << 18;

/// The differences between the decisions of policy A and policy B.
pub(super) struct Changes<'r> {
    rules: [&'r Rules; 2],
    /// Requests that at least one policy decides. Those that both answer with 400 are left out.
    pub(super) requests: u64,
    /// Requests that A and B answer with 400, and those that both answer so.
    pub(super) ambiguous: [u64; 2],
    pub(super) ambiguous_by_both: u64,
    /// Requests that A and B refuse. A 400 counts as a refusal if the other policy decides the
    /// request.
    pub(super) refused: [u64; 2],
    pub(super) verdicts: VerdictChange,
    pub(super) limits: BTreeMap<String, LimitChange>,
    pub(super) tiers: BTreeMap<String, VerdictChange>,
    keys: FxHashMap<(String, String), [u64; 2]>,
    /// Refusals of keys that are not counted separately.
    pub(super) keys_lost_track: u64,
    pub(super) input: InputStats,
}

/// Requests whose verdict changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VerdictChange {
    pub(super) newly_refused: u64,
    pub(super) newly_admitted: u64,
}

/// The differences at one limit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LimitChange {
    /// The limit's own refusals under A and under B.
    pub(super) refused: [u64; 2],
    /// Requests whose verdict changes because of the limit.
    pub(super) verdicts: VerdictChange,
    /// Keys that only B refuses, and keys that only A refuses.
    pub(super) keys_gained: u64,
    pub(super) keys_lost: u64,
}

/// A key whose refusals change.
#[derive(Clone, Debug)]
pub(super) struct KeyChange<'c> {
    pub(super) limit: &'c str,
    pub(super) key: &'c str,
    pub(super) refused: [u64; 2],
}

impl VerdictChange {
    fn add(&mut self, refuses_after: bool) {
        *(if refuses_after { &mut self.newly_refused } else { &mut self.newly_admitted }) += 1;
    }

    pub(super) fn total(self) -> u64 {
        self.newly_refused + self.newly_admitted
    }
}

impl<'r> Changes<'r> {
    pub(super) fn new(rules: [&'r Rules; 2]) -> Self {
        Self {
            rules,
            requests: 0,
            ambiguous: [0; 2],
            ambiguous_by_both: 0,
            refused: [0; 2],
            verdicts: VerdictChange::default(),
            limits: BTreeMap::new(),
            tiers: BTreeMap::new(),
            keys: FxHashMap::default(),
            keys_lost_track: 0,
            input: InputStats::default(),
        }
    }

    /// Counts a request; `None` stands for a policy that answers it with 400.
    pub(super) fn count(&mut self, decided: [Option<(&Facts<'_>, &Verdict<'_>)>; 2]) {
        for (count, of) in self.ambiguous.iter_mut().zip(decided) {
            *count += u64::from(of.is_none());
        }
        let Some((some_facts, _)) = decided[1].or(decided[0]) else {
            self.ambiguous_by_both += 1;
            return;
        };
        self.requests += 1;
        let allowed = decided.map(|of| of.is_some_and(|(_, verdict)| verdict.allowed));
        for (side, of) in decided.into_iter().enumerate() {
            self.refused[side] += u64::from(!allowed[side]);
            let Some((facts, verdict)) = of else { continue };
            for row in verdict.rows.iter().filter(|row| !row.outcome.admitted) {
                let key = shown_key(row.limit, facts, self.rules[side].http_policy());
                self.limit(&row.limit.name).refused[side] += 1;
                self.count_key((row.limit.name.to_string(), key), side);
            }
        }
        let refuses_after = !allowed[1];
        if allowed[0] == allowed[1] {
            return;
        }
        self.verdicts.add(refuses_after);
        let refusing = decided[usize::from(refuses_after)].map(|(_, verdict)| &verdict.rows);
        for row in refusing.into_iter().flatten().filter(|row| row.refuses()) {
            self.limit(&row.limit.name).verdicts.add(refuses_after);
        }
        let side = usize::from(decided[1].is_some());
        let tier = self.rules[side].policy().effective_tier(some_facts);
        let tier = tier.name.unwrap_or("no tier").to_owned();
        self.tiers.entry(tier).or_default().add(refuses_after);
    }

    /// Whether there are any differences.
    pub(super) fn any(&self) -> bool {
        let differs = |change: &[u64; 2]| change[0] != change[1];
        self.verdicts.total() > 0 || self.keys.values().any(differs)
    }

    /// Returns every limit that refused, with the keys that it gained and lost.
    pub(super) fn limits(&self) -> BTreeMap<&str, LimitChange> {
        let mut limits: BTreeMap<&str, LimitChange> =
            self.limits.iter().map(|(name, change)| (&**name, *change)).collect();
        for ((limit, _), refused) in &self.keys {
            let Some(change) = limits.get_mut(&**limit) else { continue };
            change.keys_gained += u64::from(refused[0] == 0 && refused[1] > 0);
            change.keys_lost += u64::from(refused[0] > 0 && refused[1] == 0);
        }
        limits
    }

    /// Returns the keys whose refusals change, the largest change first.
    pub(super) fn keys(&self) -> Vec<KeyChange<'_>> {
        let mut keys: Vec<KeyChange<'_>> = self
            .keys
            .iter()
            .filter(|(_, refused)| refused[0] != refused[1])
            .map(|((limit, key), refused)| KeyChange { limit, key, refused: *refused })
            .collect();
        keys.sort_by(|a, b| {
            let most = |key: &KeyChange<'_>| key.refused[0].abs_diff(key.refused[1]);
            most(b).cmp(&most(a)).then_with(|| (a.limit, a.key).cmp(&(b.limit, b.key)))
        });
        keys
    }

    fn limit(&mut self, name: &str) -> &mut LimitChange {
        self.limits.entry(name.to_owned()).or_default()
    }

    fn count_key(&mut self, key: (String, String), side: usize) {
        let has_room = self.keys.len() < KEYS_MAX;
        match self.keys.get_mut(&key) {
            Some(refused) => refused[side] += 1,
            None if has_room => {
                let mut refused = [0; 2];
                refused[side] = 1;
                self.keys.insert(key, refused);
            }
            None => self.keys_lost_track += 1,
        }
    }
}
