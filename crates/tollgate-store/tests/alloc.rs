//! Known keys cost no allocation.

use tollgate_core::{Intent, Penalty};
use tollgate_store::{
    Answers, Charge, ChargeMode, MemoryStore, Request, Store, StoreCall, conformance,
};

const NOW_US: u64 = 1_700_000_000_000_000;

#[test]
fn no_allocation_for_a_known_key() {
    let store = MemoryStore::default();
    let penalty = Penalty::try_new(3, 1_000, 2_000, 5_000).unwrap();
    let all: Vec<_> = conformance::algorithms(50).collect();
    let charges: Vec<_> = all
        .iter()
        .zip(1..)
        .flat_map(|(params, limit)| {
            let keys: [&[u8]; 2] = [b"ann", b"bob"];
            let params_id = store.register_params(params);
            keys.map(|key| Charge {
                limit,
                key,
                params,
                params_id,
                cost: 1,
                mode: ChargeMode::Enforce,
                penalty: Some(&penalty),
            })
        })
        .collect();
    let mut requests: Vec<_> =
        charges.chunks(1).map(|charges| Request { charges, intent: Intent::Take }).collect();
    requests.push(Request { charges: &charges, intent: Intent::Take });
    let mut answers = Answers::default();
    // Until every key is known and refused, every block has begun and every buffer has its size.
    for n in 0..80 {
        store.begin(NOW_US + n, StoreCall::Decide(&requests), &mut answers);
    }
    let counted = allocation_counter::measure(|| {
        for n in 0..2_000 {
            store.begin(NOW_US + 100 + n * 50, StoreCall::Decide(&requests), &mut answers);
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}
