//! Memory, as the kernel counts it: it follows the keys, and a flood of them stays under the cap.
//! In a process of its own.

use tollgate_core::algorithm::SlidingWindow;
use tollgate_core::{Intent, LimitParams, Rate};
use tollgate_store::{
    Answers, Charge, ChargeMode, MemoryStore, ParamsId, Request, Store, StoreCall,
    memory::MemoryOptions,
};

const MIB: u64 = 1 << 20;
const NOW_US: u64 = 1_700_000_010_000_000;

#[test]
fn memory_follows_the_keys_and_stays_under_the_cap() {
    let rate = Rate::try_new(100, 60_000_000).unwrap();
    let params = LimitParams::SlidingWindow(SlidingWindow::new(rate));
    // One beginning for both: what the allocator keeps of the first store would hide what the
    // second takes.
    let before = resident();
    follows_the_keys(&params, before);
    stays_under_the_cap(&params, before);
    counts_too_large_for_words_are_paid_for_in_advance();
}

fn follows_the_keys(params: &LimitParams, before: u64) {
    let store = MemoryStore::new(MemoryOptions::default().max_bytes(16 << 30));
    let mut desk = CapDriver::new(&store, params);
    for n in 0..100_000_u64 {
        assert!(desk.take(NOW_US, &n.to_le_bytes()));
    }
    let added = resident().saturating_sub(before);
    assert!(added <= 16 * MIB, "100,000 keys added {} KiB", added / 1024);
    assert_eq!(store.stats().keys, 100_000);
}

fn stays_under_the_cap(params: &LimitParams, before: u64) {
    let store = MemoryStore::new(MemoryOptions::default().max_bytes(64 * MIB));
    let mut desk = CapDriver::new(&store, params);
    let spent: Vec<_> = (0..100).map(|n| format!("spent-{n}")).collect();
    for key in &spent {
        (0..100).for_each(|_| assert!(desk.take(NOW_US, key.as_bytes())));
        assert!(!desk.take(NOW_US, key.as_bytes()));
    }
    for n in 0..5_000_000_u64 {
        desk.take(NOW_US, &n.to_le_bytes());
        if n % 50_000 == 0 {
            let key = spent[(n / 50_000) as usize].as_bytes();
            assert!(!desk.take(NOW_US, key), "a limited key got in during the flood");
        }
    }
    for key in &spent {
        assert!(!desk.take(NOW_US, key.as_bytes()), "a limited key got in after the flood");
    }
    let full = (0..1_000).filter(|n| {
        let key = format!("honest-{n}");
        (0..5).all(|_| desk.take(NOW_US, key.as_bytes()))
    });
    let full = full.count();
    assert!(full >= 990, "{full} of 1,000 honest keys were fully admitted");
    let used = resident().saturating_sub(before);
    assert!(used <= 96 * MIB, "{} MiB resident", used / MIB);
    let stats = store.stats();
    assert!(stats.bytes <= 64 * MIB, "{stats:?}");
}

/// At a rate whose counts outgrow the words, a second request must not take memory that the first
/// had not asked for.
fn counts_too_large_for_words_are_paid_for_in_advance() {
    let rate = Rate::try_new(1_000_000, 60_000_000).unwrap();
    let params = LimitParams::SlidingWindow(SlidingWindow::new(rate));
    let store = MemoryStore::new(MemoryOptions::default().max_bytes(8 * MIB));
    let mut desk = CapDriver::new(&store, &params);
    for n in 0..200_000_u64 {
        desk.spend(NOW_US, &n.to_le_bytes(), 440_000);
        desk.spend(NOW_US, &n.to_le_bytes(), 440_000);
    }
    let stats = store.stats();
    // Beyond the cap there are only the limit's overflow cells.
    assert!(stats.bytes <= 9 * MIB, "{stats:?}");
}

struct CapDriver<'a> {
    store: &'a MemoryStore,
    params: &'a LimitParams,
    params_id: ParamsId,
    answers: Answers,
}

impl<'a> CapDriver<'a> {
    fn new(store: &'a MemoryStore, params: &'a LimitParams) -> Self {
        Self {
            store,
            params,
            params_id: store.register_params(params),
            answers: Answers::default(),
        }
    }

    fn take(&mut self, now_us: u64, key: &[u8]) -> bool {
        self.spend(now_us, key, 1)
    }

    fn spend(&mut self, now_us: u64, key: &[u8], cost: u64) -> bool {
        let charge = Charge {
            limit: 1,
            key,
            params: self.params,
            params_id: self.params_id,
            cost,
            mode: ChargeMode::Enforce,
            penalty: None,
        };
        let request = Request { charges: &[charge], intent: Intent::Take };
        self.store.begin(now_us, StoreCall::Decide(&[request]), &mut self.answers);
        self.answers.get(0).is_some_and(|(admitted, _)| admitted)
    }
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}
