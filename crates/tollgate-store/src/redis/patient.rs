//! Calls for which no request waits: what is said about leases, and looks at a server.
//!
//! They have a connection and a deadline of their own. A server that is too slow for decisions may be fast enough for them, so that keys with a
//! lease go on where others follow `on_store_failure`; so the breaker neither stops them nor counts how they end.

use super::failure::{Failure, Then};
use super::link::{Call, Link};
use super::node::Node;
use redis::Value;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The connection for them.
#[derive(Debug, Default)]
pub(super) struct Patient(Arc<Mutex<Option<Arc<Link>>>>);

impl Node {
    /// Makes a call for which no request waits.
    pub(super) async fn patiently(self: &Arc<Self>, call: &Call) -> Result<Value, Failure> {
        let link = self.patient_link().await?;
        let made = link.call(call).await;
        match &made {
            Ok(_) => self.note_answer(call),
            Err(Failure { then: Then::Refused, error }) => self.note_refusal(call, error),
            Err(_) => {}
        }
        let ends = |failure: &Failure| matches!(failure.then, Then::Reconnect | Then::Elsewhere);
        if made.as_ref().is_err_and(ends) {
            let mut own = self.patient.0.lock().await;
            own.take_if(|own| Arc::ptr_eq(own, &link));
        }
        made
    }

    /// Made on the store's own runtime, as all connections are that others share.
    async fn patient_link(self: &Arc<Self>) -> Result<Arc<Link>, Failure> {
        let mut own = Arc::clone(&self.patient.0).lock_owned().await;
        if let Some(link) = own.as_ref().filter(|link| !link.is_lost()) {
            return Ok(Arc::clone(link));
        }
        *own = None;
        let node = Arc::clone(self);
        let dialing = self.shared.runtime.spawn(async move {
            let patience = node.shared.options.patience();
            let link = Arc::new(node.dial().await?.within(patience));
            *own = Some(Arc::clone(&link));
            Ok(link)
        });
        dialing.await.unwrap_or_else(|_| Err(Failure::timeout()))
    }
}
