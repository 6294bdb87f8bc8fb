//! Calls for which no request waits: what is said about leases, and looks at a server.
//!
//! They have a connection and a deadline of their own. A server that is too slow for decisions may
//! be fast enough for them, so that keys with a lease go on where others follow `on_store_failure`;
//! so the breaker neither stops them nor counts how they end.

use super::connection::{Link, ScriptCall};
use super::failure::{Failure, FailureAction};
use super::node::Node;
use redis::Value;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The connection for them.
#[derive(Debug, Default)]
pub(crate) struct BackgroundConnection(Arc<Mutex<Option<Arc<Link>>>>);

impl Node {
    /// Makes a call for which no request waits.
    pub(crate) async fn background_call(
        self: &Arc<Self>,
        call: &ScriptCall,
    ) -> Result<Value, Failure> {
        let link = self.background_link().await?;
        let made = link.call(call).await;
        match &made {
            Ok(_) => self.note_answer(call),
            Err(Failure { action: FailureAction::CallRefused, error }) => {
                self.note_refusal(call, error)
            }
            Err(_) => {}
        }
        let ends = |failure: &Failure| {
            matches!(failure.action, FailureAction::Reconnect | FailureAction::NotPrimary)
        };
        if made.as_ref().is_err_and(ends) {
            let mut own = self.background.0.lock().await;
            own.take_if(|own| Arc::ptr_eq(own, &link));
        }
        made
    }

    /// Made on the store's own runtime, as all connections are that others share.
    async fn background_link(self: &Arc<Self>) -> Result<Arc<Link>, Failure> {
        let mut own = Arc::clone(&self.background.0).lock_owned().await;
        if let Some(link) = own.as_ref().filter(|link| !link.is_closed()) {
            return Ok(Arc::clone(link));
        }
        *own = None;
        let node = Arc::clone(self);
        let dialing = self.shared.runtime.spawn(async move {
            let patience = node.shared.options.background_timeout();
            let link = Arc::new(node.dial().await?.with_deadline(patience));
            *own = Some(Arc::clone(&link));
            Ok(link)
        });
        dialing.await.unwrap_or_else(|_| Err(Failure::timeout()))
    }
}
