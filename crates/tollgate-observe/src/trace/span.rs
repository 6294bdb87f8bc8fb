//! The span of a decision.

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span, SpanKind, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tollgate::engine::Verdict;
use tollgate_policy::facts::Facts;

/// The facts about a decision that the verdict does not have.
#[derive(Clone, Copy, Debug)]
pub struct DecisionContext<'a> {
    /// The name of the front end, as in `listen`.
    pub front: &'static str,
    /// The request's `traceparent` header, unparsed.
    pub parent: Option<&'a str>,
    /// The hash of the key, from [`key_hash`].
    pub key_hash: u64,
    /// The arrival time of the request, in microseconds since the epoch.
    pub start_us: u64,
    /// The time of the decision.
    pub end_us: u64,
}

static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Like [`key_hash`], for an encoded key.
pub fn bytes_hash(key: &[u8]) -> u64 {
    SECRET.hash_one(key)
}

/// Hashes the key of a request with a secret of this process. Spans of one key can be grouped
/// without revealing the key.
pub fn key_hash(facts: &Facts<'_>, verdict: &Verdict<'_>) -> u64 {
    let Some(row) = verdict.tightest() else { return 0 };
    let mut hasher = SECRET.build_hasher();
    let several = row.limit.keys().len() > 1;
    for name in row.limit.key_used(|name| facts.get(name).is_some()) {
        // Equal values of different attributes are different keys.
        if several {
            hasher.write(name.as_bytes());
        }
        // An absent value must differ from every value, so lengths are hashed with one added.
        let value = facts.get(name);
        hasher.write_usize(value.as_ref().map_or(0, |value| value.len() + 1));
        hasher.write(value.as_deref().unwrap_or_default().as_bytes());
    }
    hasher.finish()
}

pub(super) fn record(tracer: &SdkTracer, decided: &DecisionContext<'_>, verdict: &Verdict<'_>) {
    let mut attributes = vec![
        KeyValue::new("ratelimit.allowed", verdict.allowed),
        KeyValue::new("ratelimit.source", verdict.source.as_str()),
        KeyValue::new("tollgate.front", decided.front),
    ];
    if let Some(row) = verdict.tightest() {
        attributes.extend([
            KeyValue::new("ratelimit.name", row.limit.name.to_string()),
            KeyValue::new("ratelimit.key", format!("{:016x}", decided.key_hash)),
            KeyValue::new("ratelimit.limit", saturating_i64(row.outcome.limit)),
            KeyValue::new("ratelimit.remaining", saturating_i64(row.outcome.remaining)),
        ]);
    }
    if let Some(shed) = verdict.shed {
        attributes.push(KeyValue::new("tollgate.class", saturating_i64(shed.class as u64)));
        let reasons =
            [("tollgate.shed", shed.reason), ("tollgate.shed.shadow", shed.shadow_reason)];
        for (name, reason) in reasons {
            attributes.extend(reason.map(|reason| KeyValue::new(name, reason.name())));
        }
    }
    let builder = tracer
        .span_builder("ratelimit.decision")
        .with_kind(SpanKind::Server)
        .with_start_time(system_time(decided.start_us))
        .with_attributes(attributes);
    let mut span = tracer.build_with_context(builder, &parent(decided.parent));
    span.end_with_timestamp(system_time(decided.end_us.max(decided.start_us)));
}

/// The parent context of the span, if the request's `traceparent` is valid W3C Trace Context.
fn parent(traceparent: Option<&str>) -> Context {
    struct TraceparentExtractor<'a>(&'a str);
    impl Extractor for TraceparentExtractor<'_> {
        fn get(&self, key: &str) -> Option<&str> {
            (key == "traceparent").then_some(self.0)
        }

        fn keys(&self) -> Vec<&str> {
            vec!["traceparent"]
        }
    }
    let root = Context::new();
    match traceparent {
        Some(text) => {
            TraceContextPropagator::new().extract_with_context(&root, &TraceparentExtractor(text))
        }
        None => root,
    }
}

fn system_time(us: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(us)
}

fn saturating_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
