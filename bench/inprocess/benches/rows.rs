//! Rows of `inprocess` for criterion, on one thread: `cargo bench`. The published figures come from
//! the interleaved harness. Use this for the distribution of one contender, or for a change before
//! and after.

use contenders::{
    Arrivals, Batch, Contender, FloorHot, FloorTable, Governor, Library, Limit, Limitador,
    Throttlecrab, Traffic, gcra,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::time::Instant;

const KEYS: usize = 1_000_000;

criterion_group!(benches, hot, refused, uniform, zipf);
criterion_main!(benches);

fn hot(criterion: &mut Criterion) {
    let limit = Limit::OPEN;
    row(criterion, "hot", Traffic::Hot, peers(limit, 1));
    let rest: Vec<Box<dyn Contender>> = vec![
        Box::new(Library::three("Limiter::check, three quotas", limit)),
        Box::new(FloorHot::new(limit)),
    ];
    row(criterion, "hot", Traffic::Hot, rest);
}

fn refused(criterion: &mut Criterion) {
    row(criterion, "refused", Traffic::Hot, peers(Limit::SHUT, 1));
}

fn uniform(criterion: &mut Criterion) {
    many(criterion, "uniform", Traffic::Uniform(KEYS));
}

fn zipf(criterion: &mut Criterion) {
    many(criterion, "zipf", Traffic::Zipf(KEYS));
}

fn many(criterion: &mut Criterion, name: &str, traffic: Traffic) {
    let limit = Limit::OPEN;
    let mut contenders = peers(limit, KEYS);
    contenders.push(Box::new(Batch::new(limit)));
    contenders.push(Box::new(Library::three("Limiter::check, three quotas", limit)));
    contenders.push(Box::new(FloorTable::<1>::new(limit, KEYS)));
    row(criterion, name, traffic, contenders);
}

fn peers(limit: Limit, keys: usize) -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(Library::new("Limiter::check", gcra(limit))),
        Box::new(Governor::new(limit)),
        Box::new(Throttlecrab::new(limit)),
        Box::new(Limitador::new(limit, keys)),
    ]
}

fn row(
    criterion: &mut Criterion,
    name: &str,
    traffic: Traffic,
    contenders: Vec<Box<dyn Contender>>,
) {
    let (all, keys) = (traffic.keys(), traffic.draw());
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(64)).sample_size(20);
    for contender in contenders {
        contender.run(Arrivals { keys: &all, from: 0, count: all.len(), shared: false });
        let mut from = 0;
        group.bench_function(contender.name(), |bencher| {
            // An iteration is a batch of 64, so that batching contenders are measured alike.
            bencher.iter_custom(|batches| {
                let count = batches as usize * 64;
                let start = Instant::now();
                contender.run(Arrivals { keys: &keys, from, count, shared: false });
                let elapsed = start.elapsed();
                from = (from + count) % keys.len();
                elapsed
            });
        });
    }
    group.finish();
}
