//! Any bytes as a call of Envoy's: both readers agree, nothing panics, memory stays in bounds, and what is decided is as many statuses as descriptors.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prost::Message;
use std::cell::RefCell;
use tollgate::{Gate, MemoryStore, Parts, Setup, Use, Work, policy};
use tollgate_policy::envoy::{Configs, Options};

/// The readers by themselves: the sockets around them would be most of what has to be built.
#[path = "."]
#[allow(dead_code, unfulfilled_lint_expectations)]
mod grpc {
    #[path = "../../crates/tollgate-server/src/front/grpc/asking.rs"]
    pub mod asking;
    #[path = "../../crates/tollgate-server/src/front/grpc/decode.rs"]
    pub mod decode;
    #[path = "../../crates/tollgate-server/src/front/grpc/fault.rs"]
    pub mod fault;
    #[path = "../../crates/tollgate-server/src/front/grpc/wire.rs"]
    pub mod wire;
}

use grpc::asking::{self, Asking};
use grpc::decode::{self, Limited, Names};
use grpc::wire::RateLimitRequest;

const POLICY: &[u8] = b"limits:
  - {name: a, key: [domain, descriptor.user], rate: 5/min, algorithm: fixed-window}
  - {name: b, match: {descriptor.path: '/api/*'}, rate: 9/s, algorithm: gcra, debt: true}
";
const FILE: &[u8] = b"{domain: edge, descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 3}}, {key: path, value: '/a*'}]}";

struct World {
    gate: Gate,
    parts: Parts,
    work: Work,
    names: Names,
    now_us: u64,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::new({
        let configs = Configs::read(&[("edge.yaml", FILE)], Options::default()).expect("good");
        let setup = Setup::of(&policy::compile(POLICY).expect("good")).with_envoy(configs);
        let gate = Gate::new(setup, MemoryStore::default()).expect("good");
        World { gate, parts: Parts::default(), work: Work::default(), names: Names::default(), now_us: 1_700_000_000_000_000 }
    });
}

fuzz_target!(|input: &[u8]| {
    let read = asking::read(input);
    let Ok(request) = RateLimitRequest::decode(input) else {
        assert!(read.is_none(), "the short reader takes nothing that the other does not");
        return;
    };
    let asking = Asking::of(&request);
    if let Some(read) = &read {
        assert_eq!(read.domain, asking.domain);
        assert_eq!(read.hits_addend, asking.hits_addend);
        assert_eq!(read.descriptors.len(), asking.descriptors.len());
        for (read, wanted) in read.descriptors.iter().zip(&asking.descriptors) {
            assert_eq!(read.entries[..], wanted.entries[..]);
            assert_eq!(read.limit, wanted.limit);
            assert_eq!(read.hits_addend, wanted.hits_addend);
            assert_eq!(read.is_negative_hits, wanted.is_negative_hits);
        }
    }
    if decode::check(&asking).is_err() {
        return;
    }
    WORLD.with_borrow_mut(|world| decide(world, &asking));
});

fn decide(world: &mut World, request: &Asking<'_>) {
    let World { gate, parts, work, names, now_us } = world;
    *now_us += 1_000;
    let rules = gate.rules();
    names.renew(&rules);
    parts.clear();
    let mut key = Vec::new();
    for descriptor in &request.descriptors {
        let hits = decode::hits(request, descriptor);
        assert_eq!(hits.looks, descriptor.hits_addend == Some(0));
        let how = if hits.looks { Use::Look } else { Use::Charge };
        parts.begin();
        if let Ok(Limited::By(rate)) = decode::limited(descriptor) {
            decode::add_own(parts, rate, request.domain, descriptor, hits);
            continue;
        }
        let mut facts = rules.facts(Default::default());
        names.fill(request.domain, descriptor, &mut facts);
        parts.add(&rules, &facts, hits.hits, how);
        if let Some(rule) = decode::find(rules.envoy().expect("files"), request.domain, descriptor, &mut key) {
            parts.add_rule(&rules, rule, &key, hits.hits, how);
        }
    }
    let count = parts.len();
    assert_eq!(count, request.descriptors.len());
    let asked = gate.check_parts(&rules, *now_us, parts, work);
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
