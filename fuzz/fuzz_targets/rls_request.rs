//! Any bytes as an Envoy call, in protobuf or JSON. Nothing panics, memory is bounded, and each
//! descriptor has a part in the decision.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prost::Message;
use std::cell::RefCell;
use tollgate::MemoryStore;
use tollgate::engine::{Gate, MultiCheck, GateSetup, GateBuffers, policy};
use tollgate_policy::envoy::{Configs, ConfigOptions};

/// Only the decoders: the rest of the server would take most of the build time.
#[path = "."]
#[allow(dead_code, unfulfilled_lint_expectations)]
mod grpc {
    #[path = "../../crates/tollgate-server/src/front/grpc/decode.rs"]
    pub mod decode;
    #[path = "../../crates/tollgate-server/src/front/grpc/messages.rs"]
    pub mod messages;
    #[path = "../../crates/tollgate-server/src/front/grpc/proto_json.rs"]
    mod proto_json;
    #[path = "../../crates/tollgate-server/src/front/grpc/status.rs"]
    pub mod status;
}

use grpc::decode::{self, DescriptorAttributes};
use grpc::messages::RateLimitRequest;

const POLICY: &[u8] = b"limits:
  - {name: a, key: [domain, descriptor.user], rate: 5/min, algorithm: fixed-window}
  - {name: b, match: {descriptor.path: '/api/*'}, rate: 9/s, algorithm: gcra, debt: true}
";
const FILE: &[u8] = b"{domain: edge, descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 3}}, {key: path, value: '/a*'}]}";

struct World {
    gate: Gate,
    parts: MultiCheck,
    work: GateBuffers,
    attributes: DescriptorAttributes,
    now_us: u64,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::new({
        let configs = Configs::read(&[("edge.yaml", FILE)], ConfigOptions::default()).expect("good");
        let setup = GateSetup::of(&policy::compile(POLICY).expect("good")).with_envoy(configs);
        let gate = Gate::new(setup, MemoryStore::default()).expect("good");
        World { gate, parts: MultiCheck::default(), work: GateBuffers::default(), attributes: DescriptorAttributes::default(), now_us: 1_700_000_000_000_000 }
    });
}

fuzz_target!(|input: &[u8]| {
    let read = RateLimitRequest::decode(input).ok();
    let Some(request) = read.or_else(|| serde_json::from_slice(input).ok()) else { return };
    if decode::validate(&request).is_ok() {
        WORLD.with_borrow_mut(|world| decide(world, &request));
    }
});

fn decide(world: &mut World, request: &RateLimitRequest) {
    let World { gate, parts, work, attributes, now_us } = world;
    *now_us += 1_000;
    let rules = gate.rules();
    attributes.update(&rules);
    parts.clear();
    let mut key = Vec::new();
    for descriptor in &request.descriptors {
        let hits = decode::hits(request, descriptor);
        assert_eq!(hits.is_peek, descriptor.hits_addend.is_some_and(|own| own.value == 0));
        parts.begin();
        if let Ok(Some(rate)) = decode::inline_limit(descriptor) {
            decode::add_inline(parts, rate, &request.domain, descriptor, hits);
            continue;
        }
        let mut facts = rules.facts(Default::default());
        attributes.fill(&request.domain, descriptor, &mut facts);
        parts.add(&rules, &facts, hits.hits, hits.mode());
        if let Some(rule) = decode::find(rules.envoy().expect("files"), &request.domain, descriptor, &mut key) {
            parts.add_rule(&rules, rule, &key, hits.hits, hits.mode());
        }
    }
    let count = parts.len();
    assert_eq!(count, request.descriptors.len());
    let asked = gate.check_multi(&rules, *now_us, parts, work);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(partial) = std::pin::pin!(asked).poll(&mut context) else {
        panic!("the memory store answers at once");
    };
    for part in 0..count {
        for row in partial.rows(part) {
            assert!(row.outcome.remaining <= row.outcome.limit);
            assert!(!row.refuses() || !partial.verdict.allowed);
        }
    }
}
