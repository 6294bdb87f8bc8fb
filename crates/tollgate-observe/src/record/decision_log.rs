//! Decision log: one line of JSON for each decision.

use super::line::{cut, is_request_id, json_line};
use super::sink::LineSink;
use crate::keys::{KeySecrets, ShownKey};
use crate::time::rfc3339;
use serde::Serialize;
use std::cell::Cell;
use tollgate::engine::{Row, Rules, Verdict};
use tollgate_policy::facts::Facts;
use tollgate_policy::limit::Limit;
use tollgate_policy::settings;

/// The decision log of one file.
#[derive(Debug)]
pub struct DecisionLog {
    refused_only: bool,
    sample_ppm: u32,
    sink: LineSink,
}

/// The headers of [`DecidedRequest`]: `parent` and `request_id`.
pub const RECORDED_HEADERS: [&str; 2] = ["traceparent", "x-request-id"];

/// A decided request, as seen by its front end.
#[derive(Clone, Copy, Debug)]
pub struct DecidedRequest<'a> {
    /// The front end, as `listen` spells it.
    pub front: &'static str,
    /// The request's `traceparent` header, unparsed.
    pub parent: Option<&'a str>,
    /// The `X-Request-Id` of the request.
    pub request_id: Option<&'a str>,
    /// The arrival time of the request.
    pub start_us: u64,
    /// The time of the decision.
    pub end_us: u64,
    /// The keys of the request.
    pub key: DecidedKey<'a>,
    /// Whether the request only peeked. A peek gets a span, but no line.
    pub is_peek: bool,
}

/// The keys of a decided request.
#[derive(Clone, Copy, Debug)]
pub enum DecidedKey<'a> {
    /// The attributes of the request.
    Facts(&'a Facts<'a>),
    /// The descriptors of an Envoy request, encoded.
    Descriptors(&'a [u8]),
    /// The key of the one limit of a Redis command.
    Limit {
        /// The index of the key among those of the limit.
        key_index: usize,
        /// The key, encoded.
        key: &'a [u8],
    },
}

#[derive(Serialize)]
struct DecisionLine<'a> {
    time: String,
    front: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    verdict: &'static str,
    source: &'static str,
    /// The key of the tightest limit.
    key: ShownKey,
    limits: Vec<LimitLine<'a>>,
    duration_us: u64,
}

#[derive(Serialize)]
struct LimitLine<'a> {
    name: &'a str,
    allowed: bool,
    mode: &'static str,
    source: &'static str,
    limit: u64,
    remaining: u64,
    key: ShownKey,
}

impl DecisionLog {
    pub(super) fn new(settings: &settings::DecisionLog, sink: LineSink) -> Self {
        let settings::DecisionLog { refused_only, sample_ppm, .. } = *settings;
        Self { refused_only, sample_ppm, sink }
    }

    pub(super) fn sink(&self) -> &LineSink {
        &self.sink
    }

    /// Whether to log a decision with this result: depends on `only` and on the sample.
    pub(super) fn wants(&self, allowed: bool) -> bool {
        !(self.refused_only && allowed) && is_sampled(self.sample_ppm)
    }

    /// Writes a decision.
    pub(super) fn write(
        &self,
        keys: &KeySecrets,
        rules: &Rules,
        decided: &DecidedRequest<'_>,
        verdict: &Verdict<'_>,
    ) {
        let key = |limit: &Limit| shown_key(keys, rules, limit, decided.key);
        let limits = verdict.rows.iter().map(|row| LimitLine {
            name: &row.limit.name,
            allowed: row.outcome.admitted,
            mode: row.limit.mode.word(),
            source: row.source.as_str(),
            limit: row.outcome.limit,
            remaining: row.outcome.remaining,
            key: key(row.limit),
        });
        let tightest: Option<&Row<'_>> = verdict.tightest();
        let line = DecisionLine {
            time: rfc3339(decided.start_us),
            front: decided.front,
            request_id: decided.request_id.filter(|id| is_request_id(id)),
            verdict: if verdict.allowed { "admitted" } else { "refused" },
            source: verdict.source.as_str(),
            key: tightest.map(|row| key(row.limit)).unwrap_or_default(),
            limits: limits.collect(),
            duration_us: decided.end_us.saturating_sub(decided.start_us),
        };
        self.sink.write(json_line(&line).as_bytes());
    }
}

/// The key of a limit for display; in clear text only with `show_keys`.
fn shown_key(keys: &KeySecrets, rules: &Rules, limit: &Limit, key: DecidedKey<'_>) -> ShownKey {
    match key {
        DecidedKey::Descriptors(bytes) => {
            ShownKey(vec![("descriptor".into(), keys.hash("descriptor", bytes))])
        }
        DecidedKey::Limit { key_index, key } => keys.show(rules, limit, key_index, key),
        DecidedKey::Facts(facts) => {
            let names = limit.key_used(|name| facts.get(name).is_some());
            let part = |name: &str| {
                let value = facts.get(name)?;
                Some((name.into(), keys.show_value(rules, limit, name, cut(&value))))
            };
            ShownKey(names.iter().filter_map(|name| part(name)).collect())
        }
    }
}

/// Whether a random draw out of a million is below `ppm`.
fn is_sampled(ppm: u32) -> bool {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }
    if ppm >= 1_000_000 {
        return true;
    }
    // A Weyl sequence, mixed as in SplitMix64: every run of draws is evenly distributed.
    let draw = STATE.with(|state| {
        let next = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(next);
        let mixed = (next ^ next >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    });
    ((u128::from(draw) * 1_000_000) >> 64) < u128::from(ppm)
}

#[cfg(test)]
mod tests {
    use super::is_sampled;

    #[test]
    fn a_sample_has_its_share() {
        for (ppm, expected) in [(10_000, 1_000), (500_000, 50_000), (1, 0)] {
            let drawn = (0..100_000).filter(|_| is_sampled(ppm)).count();
            assert!(drawn.abs_diff(expected) < 150 + expected / 20, "{ppm}: {drawn}");
        }
        assert!((0..1_000).all(|_| is_sampled(1_000_000)));
    }
}
