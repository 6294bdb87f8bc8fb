//! Shards: the counts of one thread until they are collected.

use super::summary::Summary;
use super::{SUMMARIES_MAX, TopMeasure};

/// Slots of the index cache, addressed by the low bits of a state id.
const PLACES: usize = 64;

/// The summaries that one thread fills.
#[derive(Debug)]
pub(super) struct Shard {
    limits: Vec<ShardLimit>,
    /// Cached indexes into `limits`, by state id.
    places: [(u64, usize); PLACES],
}

/// The summaries of one limit.
#[derive(Debug)]
pub(super) struct ShardLimit {
    name: Box<str>,
    measures: [Option<Summary>; TopMeasure::COUNTED.len()],
}

impl Default for Shard {
    fn default() -> Self {
        Self { limits: Vec::new(), places: [(0, usize::MAX); PLACES] }
    }
}

impl Shard {
    /// The limit with this state id and name; `None` if there are too many.
    #[inline]
    pub(super) fn limit(&mut self, state_id: u64, name: &str) -> Option<&mut ShardLimit> {
        let (known, place) = self.places[state_id as usize % PLACES];
        if known == state_id && place < self.limits.len() {
            return self.limits.get_mut(place);
        }
        self.find_limit(state_id, name)
    }

    /// Finds or adds a limit that is not in the index cache. A limit has one state id per period of
    /// its tiers.
    #[cold]
    fn find_limit(&mut self, state_id: u64, name: &str) -> Option<&mut ShardLimit> {
        let known = self.limits.iter().position(|limit| *limit.name == *name);
        if known.is_none() && self.limits.len() >= SUMMARIES_MAX {
            return None;
        }
        let place = known.unwrap_or_else(|| {
            self.limits.push(ShardLimit { name: name.into(), measures: Default::default() });
            self.limits.len() - 1
        });
        self.places[state_id as usize % PLACES] = (state_id, place);
        self.limits.get_mut(place)
    }

    /// Returns the counts, by limit.
    pub(super) fn into_limits(
        self,
    ) -> impl Iterator<Item = (Box<str>, impl Iterator<Item = (TopMeasure, Summary)>)> {
        self.limits.into_iter().map(|limit| {
            let measures = TopMeasure::COUNTED.into_iter().zip(limit.measures);
            (limit.name, measures.filter_map(|(measure, summary)| Some((measure, summary?))))
        })
    }
}

impl ShardLimit {
    #[inline]
    pub(super) fn summary(&mut self, measure: TopMeasure) -> &mut Summary {
        self.measures[measure as usize].get_or_insert_default()
    }
}
