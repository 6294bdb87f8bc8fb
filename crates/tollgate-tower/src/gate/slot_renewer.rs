//! Keeps the slots of requests that take longer than a slot lasts.

use crate::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};

/// Whether somebody sees to it. One does for all requests, for as long as any of them holds a slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotRenewer(Arc<AtomicBool>);

impl SlotRenewer {
    /// A request holds a slot from now on.
    pub(crate) fn ensure_running<E: Engine>(&self, engine: &Arc<E>) {
        if let Some(duty) = self.try_start() {
            engine.spawn(Box::pin(renew_loop(engine.clone(), duty)));
        }
    }

    fn try_start(&self) -> Option<RenewerGuard> {
        (!self.0.swap(true, AcqRel)).then(|| RenewerGuard(self.clone()))
    }
}

/// Seeing to it. A task that is dropped, since its runtime ends, leaves it to the next request.
struct RenewerGuard(SlotRenewer);

impl Drop for RenewerGuard {
    fn drop(&mut self) {
        self.0.0.store(false, Release);
    }
}

async fn renew_loop<E: Engine>(engine: Arc<E>, mut duty: RenewerGuard) {
    loop {
        while let Some(wait) = engine.gate().renew_slots(engine.now_us()).await {
            engine.sleep(wait).await;
        }
        let keeper = duty.0.clone();
        drop(duty);
        // Whoever came before it was dropped has been told that somebody sees to it.
        if engine.gate().renew_slots(engine.now_us()).await.is_none() {
            return;
        }
        match keeper.try_start() {
            Some(taken) => duty = taken,
            None => return,
        }
    }
}
