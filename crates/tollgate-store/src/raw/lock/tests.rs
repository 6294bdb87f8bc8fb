use super::Lock;

/// Every interleaving of two threads that each try a few times. Loom's cell detects two threads
/// inside at once, and a missed write.
#[cfg(loom)]
#[test]
fn one_thread_at_a_time_in_every_order() {
    loom::model(|| {
        let lock = loom::sync::Arc::new(Lock::new(loom::cell::Cell::new(0)));
        let other = lock.clone();
        let add = |lock: &Lock<loom::cell::Cell<usize>>| {
            let tries = (0..3).filter_map(|_| lock.try_lock());
            tries.map(|count| count.set(count.get() + 1)).count()
        };
        let there = loom::thread::spawn(move || add(&other));
        let here = add(&lock);
        let there = there.join().unwrap();
        assert!(here + there > 0, "a try fails only beside one that succeeds");
        assert_eq!(lock.try_lock().unwrap().get(), here + there);
    });
}

/// More threads than cores, so that holders are preempted sometimes and the others wait in every
/// way.
#[cfg(not(loom))]
#[test]
fn one_thread_at_a_time() {
    let lock = Lock::new((0_u64, 0_u64));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let mut counts = lock.lock();
                    counts.0 += 1;
                    counts.1 = counts.0 * 3;
                }
            });
        }
    });
    assert_eq!(*lock.lock(), (160_000, 480_000));
}

#[cfg(not(loom))]
#[test]
fn a_holder_that_sleeps_is_waited_for() {
    let lock = Lock::new(false);
    std::thread::scope(|scope| {
        let mut held = lock.lock();
        let waiting = scope.spawn(|| *lock.lock());
        // Far longer than polling and yielding take. If not, the test only covers less.
        std::thread::sleep(super::NAP * 100);
        *held = true;
        drop(held);
        assert!(waiting.join().unwrap(), "it saw what the holder wrote");
    });
}

#[cfg(not(loom))]
#[test]
fn a_panic_lets_go() {
    let lock = Lock::new(0);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        *lock.lock() += 1;
        let _held = lock.lock();
        panic!("while holding it");
    }));
    assert!(panicked.is_err());
    assert_eq!(*lock.lock(), 1);
}
