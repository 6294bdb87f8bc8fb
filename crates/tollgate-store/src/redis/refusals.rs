//! Whether a server refuses one sort of call: a right is missing, or a key holds what no script
//! wrote.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many calls in a row have to be answered until that is over. One bad key among many is refused
/// again and again, and is one piece of news.
const ANSWERED_LEAST: u32 = 100;

/// What is refused. Of several sorts the first counts: they have the same cause more often than
/// not.
#[derive(Debug, Default)]
pub(super) struct RefusalTracker {
    /// Whether there are any, which is all that most calls have to know.
    any: AtomicBool,
    refused: Mutex<Option<RefusedScript>>,
}

#[derive(Debug)]
struct RefusedScript {
    script: &'static str,
    /// Calls that were answered since.
    answered: u32,
}

impl RefusalTracker {
    /// A call of this script was refused. Answers whether that is news.
    pub(super) fn record_refusal(&self, script: &'static str) -> bool {
        let mut refused = self.lock();
        match refused.as_mut() {
            Some(known) => {
                if known.script == script {
                    known.answered = 0;
                }
                false
            }
            None => {
                *refused = Some(RefusedScript { script, answered: 0 });
                self.any.store(true, Ordering::Relaxed);
                true
            }
        }
    }

    /// A call of this script was answered. Answers whether that ends the refusals.
    pub(super) fn record_answer(&self, script: &'static str) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let mut refused = self.lock();
        let Some(known) = refused.as_mut().filter(|known| known.script == script) else {
            return false;
        };
        known.answered += 1;
        let is_over = known.answered >= ANSWERED_LEAST;
        if is_over {
            *refused = None;
            self.any.store(false, Ordering::Relaxed);
        }
        is_over
    }

    /// A panic elsewhere leaves it whole.
    fn lock(&self) -> MutexGuard<'_, Option<RefusedScript>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
