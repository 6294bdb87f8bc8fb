//! The task that renews the slots of long requests.

use crate::Engine;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};

/// Whether the renewal task runs. One task serves all requests while any of them holds a slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotRenewer(Arc<AtomicBool>);

impl SlotRenewer {
    /// Starts the task unless it runs.
    pub(crate) fn ensure_running<E: Engine>(&self, engine: &Arc<E>) {
        if let Some(guard) = self.try_start() {
            engine.spawn(Box::pin(renew_loop(engine.clone(), guard)));
        }
    }

    fn try_start(&self) -> Option<RenewerGuard> {
        (!self.0.swap(true, AcqRel)).then(|| RenewerGuard(self.clone()))
    }
}

/// Held by the task. If the task is dropped with its runtime, the next request starts another.
struct RenewerGuard(SlotRenewer);

impl Drop for RenewerGuard {
    fn drop(&mut self) {
        self.0.0.store(false, Release);
    }
}

async fn renew_loop<E: Engine>(engine: Arc<E>, mut guard: RenewerGuard) {
    loop {
        while let Some(wait) = engine.gate().renew_slots(engine.now_us()).await {
            engine.sleep(wait).await;
        }
        let renewer = guard.0.clone();
        drop(guard);
        // A request that came before the drop found the task running, so check once more.
        if engine.gate().renew_slots(engine.now_us()).await.is_none() {
            return;
        }
        match renewer.try_start() {
            Some(taken) => guard = taken,
            None => return,
        }
    }
}
