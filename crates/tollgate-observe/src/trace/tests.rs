use super::{DecisionContext, Signal, Traces, key_hash};
use crate::otlp::tests::collector::{self, Collector, attribute};
use opentelemetry_proto::tonic::trace::v1::Span;
use std::time::Duration;
use tollgate::engine::{Gate, GateBuffers, GateSetup, policy};

const NOW_US: u64 = 1_700_000_000_000_000;
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A gate with a limit of two per user, and a smaller shadow limit for all users together.
fn gate() -> Gate {
    let file = b"limits: [{name: per-user, key: [user], rate: 2/min, algorithm: fixed-window},
        {name: all, rate: 0/min, mode: shadow}]";
    let compiled = policy::compile(file).unwrap();
    Gate::new(GateSetup::of(&compiled), Default::default()).unwrap()
}

/// Decides one request and records it, as a front end does.
fn decide(traces: &Traces, gate: &Gate, user: &str, parent: Option<&str>) {
    let mut work = GateBuffers::default();
    let rules = gate.rules();
    let mut facts = rules.facts(Default::default());
    facts.set("user", user).unwrap();
    let verdict = gate.check(&rules, NOW_US, &facts, 1, &mut work).now();
    let key_hash = key_hash(&facts, &verdict);
    let (start_us, end_us) = (NOW_US, NOW_US + 7);
    traces.record_decision(
        &DecisionContext { front: "http", parent, key_hash, start_us, end_us },
        &verdict,
    );
}

fn started(collector: &Collector) -> Traces {
    let traces = Traces::off();
    assert!(!traces.enabled());
    traces.start(&collector.options(Signal::Traces)).unwrap();
    assert!(traces.enabled());
    traces
}

/// The spans that the collector received, after a stop.
fn sent(traces: &Traces, collector: Collector) -> Vec<Span> {
    traces.stop(Duration::from_secs(60));
    assert!(!traces.enabled());
    collector.requests().iter().flat_map(collector::ExportRequest::spans).collect()
}

#[test]
fn a_decision_is_a_span_with_its_figures() {
    let collector = Collector::start();
    let traces = started(&collector);
    let gate = gate();
    for _ in 0..3 {
        decide(&traces, &gate, "alice", None);
    }
    let spans = sent(&traces, collector);
    assert_eq!(spans.len(), 3);
    let shown = |name: &str| spans.iter().map(|span| attribute(span, name)).collect::<Vec<_>>();
    assert_eq!(shown("ratelimit.allowed"), ["true", "true", "false"]);
    assert_eq!(shown("ratelimit.remaining"), ["1", "0", "0"]);
    assert_eq!(shown("ratelimit.limit"), ["2", "2", "2"]);
    assert_eq!(shown("ratelimit.source"), ["shadow", "shadow", "memory"]);
    assert_eq!(shown("ratelimit.name"), ["per-user"; 3], "not the shadow limit");
    assert_eq!(shown("tollgate.front"), ["http"; 3]);
    for span in &spans {
        assert_eq!(span.name, "ratelimit.decision");
        assert_eq!(span.start_time_unix_nano, NOW_US * 1000);
        assert_eq!(span.end_time_unix_nano, (NOW_US + 7) * 1000);
        assert!(span.parent_span_id.is_empty());
    }
}

/// The fleet admits two requests, and keeps one slot for critical ones.
#[test]
fn a_span_names_the_class_and_why_the_request_was_shed() {
    let collector = Collector::start();
    let traces = started(&collector);
    let file = b"classes: [{name: critical, match: {user: alice}}, {name: normal, default: true}]
shed: {fleet: {capacity: 2, reserve: {critical: 50%}}}";
    let compiled = policy::compile(file).unwrap();
    let gate = Gate::new(GateSetup::of(&compiled), Default::default()).unwrap();
    for user in ["bob", "bob", "alice"] {
        decide(&traces, &gate, user, None);
    }
    let spans = sent(&traces, collector);
    let shown = |name: &str| spans.iter().map(|span| attribute(span, name)).collect::<Vec<_>>();
    assert_eq!(shown("tollgate.class"), ["1", "1", "0"]);
    assert_eq!(shown("ratelimit.allowed"), ["true", "false", "true"]);
    assert_eq!(shown("ratelimit.source")[1], "shed");
    assert_eq!(attribute(&spans[1], "tollgate.shed"), "fleet");
    let has_reason = |span: &Span| span.attributes.iter().any(|it| it.key == "tollgate.shed");
    assert_eq!(spans.iter().filter(|span| has_reason(span)).count(), 1);
}

#[test]
fn the_collector_is_told_who_sends_and_in_which_format() {
    let collector = Collector::start();
    let traces = started(&collector);
    decide(&traces, &gate(), "alice", None);
    traces.stop(Duration::from_secs(60));
    let requests = collector.requests();
    let [request] = requests.as_slice() else { panic!("one batch") };
    assert_eq!(request.line, "POST /v1/traces");
    assert_eq!(request.content_type, "application/x-protobuf");
    assert_eq!(request.service(), "tollgate");
}

#[test]
fn keys_are_told_apart_and_not_told() {
    let collector = Collector::start();
    let traces = started(&collector);
    let gate = gate();
    for user in ["alice@example.org", "bob@example.org", "alice@example.org"] {
        decide(&traces, &gate, user, None);
    }
    traces.stop(Duration::from_secs(60));
    let requests = collector.requests();
    let spans: Vec<Span> = requests.iter().flat_map(collector::ExportRequest::spans).collect();
    let keys: Vec<String> = spans.iter().map(|span| attribute(span, "ratelimit.key")).collect();
    assert_eq!(keys.len(), 3);
    assert_eq!(keys[0], keys[2]);
    assert_ne!(keys[0], keys[1]);
    let clear = b"example.org";
    let has = |bytes: &[u8]| bytes.windows(clear.len()).any(|window| window == clear);
    assert!(requests.iter().all(|request| !has(&request.body)));
}

#[test]
fn a_span_belongs_to_the_trace_that_the_request_names() {
    let collector = Collector::start();
    let traces = started(&collector);
    decide(&traces, &gate(), "alice", Some(&format!("00-{TRACE}-{PARENT}-01")));
    let spans = sent(&traces, collector);
    assert_eq!(collector::hex(&spans[0].trace_id), TRACE);
    assert_eq!(collector::hex(&spans[0].parent_span_id), PARENT);
}

#[test]
fn a_trace_that_is_not_recorded_stays_unrecorded() {
    let collector = Collector::start();
    let traces = started(&collector);
    decide(&traces, &gate(), "alice", Some(&format!("00-{TRACE}-{PARENT}-00")));
    assert_eq!(sent(&traces, collector).len(), 0);
}

#[test]
fn a_parent_that_makes_no_sense_is_no_parent() {
    let collector = Collector::start();
    let traces = started(&collector);
    let zeros = "0".repeat(32);
    let wrong = [
        String::new(),
        "nonsense".into(),
        format!("00-{zeros}-{PARENT}-01"),
        format!("00-{TRACE}-{PARENT}"),
        format!("00-{TRACE}-{PARENT}-01-more"),
        format!("ff-{TRACE}-{PARENT}-01"),
        format!("00-{}-{PARENT}-01", TRACE.to_uppercase()),
        "é".repeat(64),
    ];
    for parent in &wrong {
        decide(&traces, &gate(), "alice", Some(parent));
    }
    let spans = sent(&traces, collector);
    assert_eq!(spans.len(), wrong.len());
    for (span, parent) in spans.iter().zip(&wrong) {
        assert!(span.parent_span_id.is_empty(), "{parent:?}");
        assert_ne!(collector::hex(&span.trace_id), TRACE, "{parent:?}");
    }
}

/// The collector accepts the first batch, but answers only after all decisions, which overflow
/// every queue. If a decision waited for the collector, this test would hang.
#[test]
fn a_collector_that_does_not_answer_keeps_nobody_waiting() {
    let collector = Collector::silent();
    let traces = started(&collector);
    let gate = gate();
    for _ in 0..10_000 {
        decide(&traces, &gate, "alice", None);
    }
    collector.answer();
    let spans = sent(&traces, collector);
    assert!(!spans.is_empty() && spans.len() < 10_000, "{}: the queue is bounded", spans.len());
}
