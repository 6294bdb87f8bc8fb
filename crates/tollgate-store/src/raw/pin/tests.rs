/// Every interleaving of a reader and a thread that frees. Loom's cell detects a read of freed
/// memory, and a free during a read.
#[cfg(loom)]
#[test]
fn nothing_is_freed_under_a_reader() {
    use super::{PhantomData, Pin, PinRecord};
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering, fence};

    struct World {
        record: PinRecord,
        /// The index of the published array.
        published: AtomicUsize,
        arrays: [UnsafeCell<bool>; 2],
    }
    loom::model(|| {
        let world = Arc::new(World {
            record: PinRecord { edges: AtomicUsize::new(0) },
            published: AtomicUsize::new(0),
            arrays: [UnsafeCell::new(true), UnsafeCell::new(true)],
        });
        let reader = world.clone();
        let there = loom::thread::spawn(move || {
            for _ in 0..2 {
                reader.record.begin::<false>();
                let _pin = Pin { record: Some(&reader.record), not_send: PhantomData };
                let at = reader.published.load(Ordering::Acquire);
                // SAFETY: loom checks the access.
                assert!(reader.arrays[at].with(|alive| unsafe { *alive }), "read after free");
            }
        });
        world.published.store(1, Ordering::Release);
        fence(Ordering::SeqCst);
        world.record.wait();
        // SAFETY: loom checks the access.
        world.arrays[0].with_mut(|alive| unsafe { *alive = false });
        there.join().unwrap();
    });
}

#[cfg(not(loom))]
mod threads {
    use crate::raw::pin::{pin, wait_for_readers};
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

    /// Readers never see a value that was overwritten after the wait for its readers.
    #[test]
    fn replaced_memory_is_freed_after_its_readers() {
        let start = Box::into_raw(Box::new(AtomicU64::new(0)));
        let (published, done) = (AtomicPtr::new(start), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut latest = 0;
                    while !done.load(Ordering::Relaxed) {
                        let pin = pin();
                        // SAFETY: it is freed only after the pinned threads have been waited for.
                        let seen =
                            unsafe { &*published.load(Ordering::Acquire) }.load(Ordering::Relaxed);
                        drop(pin);
                        assert!(seen != u64::MAX && seen >= latest, "{seen} after {latest}");
                        latest = seen;
                    }
                });
            }
            for n in 1..2_000 {
                let new = Box::into_raw(Box::new(AtomicU64::new(n)));
                let old = published.swap(new, Ordering::AcqRel);
                assert!(wait_for_readers());
                // SAFETY: it has no readers any more.
                let old = unsafe { Box::from_raw(old) };
                old.store(u64::MAX, Ordering::Relaxed);
            }
            done.store(true, Ordering::Relaxed);
        });
        // SAFETY: the readers have ended.
        drop(unsafe { Box::from_raw(published.load(Ordering::Relaxed)) });
    }

    #[test]
    fn a_pinned_thread_does_not_wait_for_itself() {
        let pinned = pin();
        assert!(!wait_for_readers());
        drop(pinned);
        assert!(wait_for_readers());
    }

    #[test]
    #[should_panic(expected = "pins do not nest")]
    fn a_second_pin_would_end_the_first() {
        let (_first, _second) = (pin(), pin());
    }

    #[test]
    fn a_panic_unpins() {
        let panicked = std::panic::catch_unwind(|| {
            let _pin = pin();
            panic!("while pinned");
        });
        assert!(panicked.is_err());
        assert!(wait_for_readers());
    }
}
