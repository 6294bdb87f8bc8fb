//! One decision as a span.

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span, SpanKind, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tollgate::engine::{ShedVerdict, Source, Verdict};
use tollgate_core::Outcome;
use tollgate_policy::facts::Facts;

/// What a front end knows about a decision besides the verdict.
#[derive(Clone, Copy, Debug)]
pub struct DecisionContext<'a> {
    /// Which front end, as `listen` spells it.
    pub front: &'static str,
    /// The request's `traceparent`, as it came.
    pub parent: Option<&'a str>,
    /// From [`key_hash`].
    pub key_hash: u64,
    /// When the request came, in microseconds since the epoch.
    pub start_us: u64,
    /// When it was decided.
    pub end_us: u64,
}

static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The same for a key that is bytes already.
pub fn bytes_hash(key: &[u8]) -> u64 {
    SECRET.hash_one(key)
}

/// Tells spans of one key from those of another, without telling the key: a hash with a secret of
/// this process.
pub fn key_hash(facts: &Facts<'_>, verdict: &Verdict<'_>) -> u64 {
    let Some(row) = verdict.tightest() else { return 0 };
    let mut hasher = SECRET.build_hasher();
    let several = row.limit.keys().len() > 1;
    for name in row.limit.key_used(|name| facts.get(name).is_some()) {
        // Equal values of different attributes are different keys.
        if several {
            hasher.write(name.as_bytes());
        }
        // What is absent differs from every value: lengths are hashed with one added.
        let value = facts.get(name);
        hasher.write_usize(value.as_ref().map_or(0, |value| value.len() + 1));
        hasher.write(value.as_deref().unwrap_or_default().as_bytes());
    }
    hasher.finish()
}

/// What was decided, as a span shows it.
#[derive(Clone, Copy, Debug)]
pub struct SpanDecision<'a> {
    /// Whether the request may pass.
    pub allowed: bool,
    /// Where that came from.
    pub source: Source,
    /// The limit that says most about it, and what it said.
    pub limit: Option<(&'a str, &'a Outcome)>,
    /// What shedders said.
    pub shed: Option<ShedVerdict>,
}

impl<'a> SpanDecision<'a> {
    pub(super) fn of(verdict: &'a Verdict<'_>) -> Self {
        let limit = verdict.tightest().map(|row| (&*row.limit.name, &row.outcome));
        Self { allowed: verdict.allowed, source: verdict.source, limit, shed: verdict.shed }
    }
}

pub(super) fn record(tracer: &SdkTracer, decided: &DecisionContext<'_>, shown: &SpanDecision<'_>) {
    let mut attributes = vec![
        KeyValue::new("ratelimit.allowed", shown.allowed),
        KeyValue::new("ratelimit.source", shown.source.as_str()),
        KeyValue::new("tollgate.front", decided.front),
    ];
    if let Some((name, outcome)) = shown.limit {
        attributes.extend([
            KeyValue::new("ratelimit.name", name.to_owned()),
            KeyValue::new("ratelimit.key", format!("{:016x}", decided.key_hash)),
            KeyValue::new("ratelimit.limit", saturating_i64(outcome.limit)),
            KeyValue::new("ratelimit.remaining", saturating_i64(outcome.remaining)),
        ]);
    }
    if let Some(shed) = shown.shed {
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

/// Where the request's own trace is, if it says so in a form that W3C Trace Context allows.
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
