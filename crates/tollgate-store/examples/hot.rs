//! Nanoseconds per decision, for a quick look while changing the hot path: `cargo run --release --example hot [ALGORITHM [WHAT]]`.
#![allow(clippy::float_arithmetic, clippy::print_stdout, clippy::disallowed_methods)]

use std::hint::black_box;
use std::time::Instant;
use tollgate_core::algorithm::{Gcra, SlidingWindow, TokenBucket};
use tollgate_core::{Intent, Numbers, Rate};
use tollgate_store::{
    Answers, Charge, MemoryStore, Mode, ProcessClock, Request, Store, Ticket, memory::Options,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rate = Rate::try_new(1_000_000, 1_000_000)?;
    let gcra = Numbers::Gcra(Gcra::try_new(rate, None)?);
    let sliding = Numbers::SlidingWindow(SlidingWindow::new(Rate::try_new(10_000, 60_000_000)?));
    let token = Numbers::TokenBucket(TokenBucket::try_new(rate, None)?);
    let keys: Vec<String> = (0..1_000_000).map(|n| format!("user-{n:07}")).collect();
    let hot = vec![keys[0].as_str(); 1];
    let uniform = pick(&keys, 1 << 20, |_, r| (r % 1_000_000) as usize);
    let zipf = zipf(&keys, 1 << 20);
    let rounds = std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000_000);
    let only = std::env::args().nth(1).unwrap_or_default();
    let all = [("gcra", gcra), ("sliding-window", sliding), ("token-bucket", token)];
    for (name, numbers) in all.into_iter().filter(|(name, _)| name.starts_with(&only)) {
        println!("{name}");
        let store = filled(&numbers, &keys);
        let ticket = store.enroll(&numbers);
        for (what, order) in [("hot", &hot), ("uniform", &uniform), ("zipf", &zipf)] {
            report(what, 1, || singles(&store, &numbers, ticket, order, rounds));
        }
        report("uniform, batch of 64", 1, || batches(&store, &numbers, ticket, &uniform, rounds));
        report("three limits, hot", 1, || three(&store, &numbers, ticket, &hot, rounds));
        report("three limits, uniform", 1, || three(&store, &numbers, ticket, &uniform, rounds));
        report("hot, two threads", 2, || singles(&store, &numbers, ticket, &hot, rounds));
        report("uniform, two threads", 2, || singles(&store, &numbers, ticket, &uniform, rounds));
    }
    report("clock", 1, || {
        (0..10_000_000).for_each(|_| _ = black_box(ProcessClock.now_us()));
        10_000_000
    });
    if only.is_empty() {
        bytes_per_key(&gcra);
    }
    Ok(())
}

fn filled(numbers: &Numbers, keys: &[String]) -> MemoryStore {
    let store = MemoryStore::default();
    let ticket = store.enroll(numbers);
    let order: Vec<_> = keys.iter().map(String::as_str).collect();
    singles(&store, numbers, ticket, &order, keys.len());
    store
}

fn charge<'a>(numbers: &'a Numbers, ticket: Ticket, limit: u64, key: &'a str) -> Charge<'a> {
    Charge {
        limit,
        key: key.as_bytes(),
        numbers,
        ticket,
        cost: 1,
        mode: Mode::Enforce,
        penalty: None,
    }
}

fn singles(
    store: &MemoryStore,
    numbers: &Numbers,
    ticket: Ticket,
    order: &[&str],
    rounds: usize,
) -> usize {
    let mut answers = Answers::default();
    let mut next = 0;
    for _ in 0..rounds {
        let charges = [charge(numbers, ticket, 1, order[next])];
        next = if next + 1 == order.len() { 0 } else { next + 1 };
        store.decide_now(
            ProcessClock.now_us(),
            &[Request { charges: &charges, intent: Intent::Take }],
            &mut answers,
        );
        black_box(answers.get(0));
    }
    rounds
}

fn three(
    store: &MemoryStore,
    numbers: &Numbers,
    ticket: Ticket,
    order: &[&str],
    rounds: usize,
) -> usize {
    let mut answers = Answers::default();
    for n in 0..rounds {
        let key = order[n % order.len()];
        let charges = [1, 2, 3].map(|limit| charge(numbers, ticket, limit, key));
        store.decide_now(
            ProcessClock.now_us(),
            &[Request { charges: &charges, intent: Intent::Take }],
            &mut answers,
        );
        black_box(answers.get(0));
    }
    rounds
}

fn batches(
    store: &MemoryStore,
    numbers: &Numbers,
    ticket: Ticket,
    order: &[&str],
    rounds: usize,
) -> usize {
    let mut answers = Answers::default();
    for n in 0..rounds / 64 {
        let at = n * 64 % (order.len() - 64);
        let charges: [_; 64] = std::array::from_fn(|m| [charge(numbers, ticket, 1, order[at + m])]);
        let requests: [_; 64] =
            std::array::from_fn(|m| Request { charges: &charges[m], intent: Intent::Take });
        store.decide_now(ProcessClock.now_us(), &requests, &mut answers);
        black_box(answers.get(63));
    }
    rounds
}

/// CPU time, not wall time: the figure that holds on a machine that does other things, too.
fn report(what: &str, threads: usize, work: impl Fn() -> usize + Sync) {
    if !std::env::args().nth(2).is_none_or(|only| what.starts_with(&only)) {
        return;
    }
    let mut best = f64::MAX;
    for _ in 0..5 {
        let runs: Vec<_> = std::thread::scope(|scope| {
            let timed = || {
                let start = cpu_ns();
                let done = work();
                (cpu_ns() - start) as f64 / done as f64
            };
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(timed)).collect();
            running.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        best = best.min(runs.iter().sum::<f64>() / runs.len() as f64);
    }
    println!("  {what:<24} {best:>7.1} ns");
}

/// What this thread has run so far.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn bytes_per_key(numbers: &Numbers) {
    const KEYS: usize = 10_000_000;
    let before = resident();
    let store = MemoryStore::new(Options::default().max_bytes(1 << 30));
    let ticket = store.enroll(numbers);
    let mut answers = Answers::default();
    let start = Instant::now();
    for n in 0..KEYS {
        let key = format!("user-{n:08}");
        let charges = [Charge { cost: 1_000, ..charge(numbers, ticket, 1, &key) }];
        store.decide_now(
            1_700_000_000_000_000,
            &[Request { charges: &charges, intent: Intent::Take }],
            &mut answers,
        );
    }
    println!(
        "10M keys: {:.1} resident bytes each, {:.1} counted, {:.0} ns to add; {:?}",
        (resident() - before) as f64 / KEYS as f64,
        store.stats().bytes as f64 / KEYS as f64,
        start.elapsed().as_nanos() as f64 / KEYS as f64,
        store.stats()
    );
}

fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4_096
}

fn pick(keys: &[String], count: usize, choose: impl Fn(usize, u64) -> usize) -> Vec<&str> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count)
        .map(|n| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            keys[choose(n, state >> 11)].as_str()
        })
        .collect()
}

/// Zipf 0.99 by inverting the continuous distribution.
fn zipf(keys: &[String], count: usize) -> Vec<&str> {
    let n = keys.len() as f64;
    pick(keys, count, |_, r| {
        let u = (r % (1 << 40)) as f64 / (1_u64 << 40) as f64;
        let x = (u * (n.powf(0.01) - 1.0) + 1.0).powf(100.0);
        // Spread the popular ones over the list.
        (x as usize).wrapping_mul(7_919_993) % keys.len()
    })
}
