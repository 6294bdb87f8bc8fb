//! Many threads admit no more than one would.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tollgate_core::{Intent, algorithm::Algorithm};
use tollgate_store::{
    Answers, Charge, ChargeMode, MemoryStore, Request, Store, StoreCall, conformance,
};

const THREADS: u64 = 4;
const NOW_US: u64 = 1_700_000_000_000_000;

#[test]
fn exactly_a_thousand_of_many() {
    for params in conformance::algorithms(1_000) {
        let store = MemoryStore::default();
        let params_id = store.register_params(&params);
        let admitted = AtomicU64::new(0);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (store, admitted, params) = (&store, &admitted, &params);
                scope.spawn(move || {
                    let mut answers = Answers::default();
                    for n in 0..2_000 {
                        // Other keys come and go meanwhile, so that tables grow under the one that
                        // counts.
                        let other = (thread << 32 | n).to_le_bytes();
                        let charge = |key| Charge {
                            limit: 1,
                            key,
                            params,
                            params_id,
                            cost: 1,
                            mode: ChargeMode::Enforce,
                            penalty: None,
                        };
                        let (hot, cold) = ([charge(b"hot")], [charge(&other)]);
                        let request = |charges| Request { charges, intent: Intent::Take };
                        store.begin(
                            NOW_US,
                            StoreCall::Decide(&[request(&hot), request(&cold)]),
                            &mut answers,
                        );
                        if answers.get(0).is_some_and(|(admitted, _)| admitted) {
                            admitted.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(admitted.into_inner(), 1_000, "{}", params.algorithm());
        assert_eq!(params.capacity(), 1_000);
    }
}
