//! Control calls decide nothing. They use connections of their own, so that they delay no decision.
//!
//! Background calls (lease renewals, markers) have a longer deadline. A server that is too slow for
//! decisions may still be fast enough for them, so leased keys keep working. The circuit breaker
//! neither stops background calls nor counts their failures.

use super::connection::{Link, ScriptCall};
use super::failure::{Failure, FailureAction};
use super::server::Server;
use crate::StoreErrorKind;
use redis::{Cmd, Value};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

/// A connection that callers share until it fails.
#[derive(Debug, Default)]
pub(crate) struct CachedConnection(Arc<Mutex<Option<Arc<Link>>>>);

impl CachedConnection {
    /// Returns the connection, dialled on `runtime` if there is none. The caller's deadline may be
    /// too short for dialling.
    pub(crate) async fn get(
        &self,
        runtime: &Handle,
        dial: impl Future<Output = Result<Link, Failure>> + Send + 'static,
    ) -> Result<Arc<Link>, Failure> {
        let mut cached = Arc::clone(&self.0).lock_owned().await;
        if let Some(link) = cached.as_ref().filter(|link| !link.is_closed()) {
            return Ok(Arc::clone(link));
        }
        *cached = None;
        let dialing = runtime.spawn(async move {
            let link = Arc::new(dial.await?);
            *cached = Some(Arc::clone(&link));
            Ok(link)
        });
        // An error means that the runtime has ended.
        dialing.await.unwrap_or_else(|_| Err(Failure::timeout()))
    }

    /// Removes `link` from the cache if `failure` makes it unusable.
    pub(crate) async fn drop_if_broken(&self, link: &Arc<Link>, failure: &Failure) {
        if matches!(failure.action, FailureAction::Reconnect | FailureAction::NotPrimary) {
            self.0.lock().await.take_if(|cached| Arc::ptr_eq(cached, link));
        }
    }
}

/// A call to the server of a slot that decides nothing.
#[derive(Debug)]
pub(crate) enum ServerCommand<'a> {
    Script(ScriptCall),
    /// A call that no request waits for.
    Background(ScriptCall),
    /// A command other than a script, and whether to send `ASKING` first.
    Command(&'a Cmd, bool),
}

impl ServerCommand<'_> {
    pub(crate) async fn run_on(&self, server: &Arc<Server>) -> Result<Value, Failure> {
        match self {
            Self::Script(call) => server.control(call).await,
            Self::Background(call) => server.background_call(call).await,
            Self::Command(command, asking) => server.command(command, *asking).await,
        }
    }

    pub(crate) const fn set_asking(&mut self, value: bool) {
        match self {
            Self::Script(call) | Self::Background(call) => call.asking = value,
            Self::Command(_, asking) => *asking = value,
        }
    }
}

impl Server {
    /// Calls a script that decides no request.
    pub(crate) async fn control(self: &Arc<Self>, call: &ScriptCall) -> Result<Value, Failure> {
        let link = self.control_link().await?;
        let result = link.call(call).await;
        self.after_control(&link, result).await
    }

    /// Runs a command other than a script.
    pub(crate) async fn command(
        self: &Arc<Self>,
        command: &Cmd,
        asking: bool,
    ) -> Result<Value, Failure> {
        let link = self.control_link().await?;
        let result = link.command(command, asking).await;
        self.after_control(&link, result).await
    }

    async fn control_link(self: &Arc<Self>) -> Result<Arc<Link>, Failure> {
        self.breaker
            .check()
            .map_err(|error| Failure { error, action: FailureAction::KeepConnection })?;
        let server = Arc::clone(self);
        let dial = async move {
            let dialed = server.dial().await;
            if let Err(failure) = &dialed
                && server.is_disconnected()
            {
                server.record_failure(&failure.error);
            }
            dialed
        };
        self.control.get(&self.shared.runtime, dial).await
    }

    async fn after_control(
        &self,
        link: &Arc<Link>,
        result: Result<Value, Failure>,
    ) -> Result<Value, Failure> {
        let Err(failure) = &result else {
            self.breaker.succeed();
            return result;
        };
        self.control.drop_if_broken(link, failure).await;
        // A rejected call proves nothing about decisions, which count their own failures.
        let counts = match failure.action {
            FailureAction::KeepConnection => failure.error.kind != StoreErrorKind::Rejected,
            _ => failure.action == FailureAction::Reconnect,
        };
        if counts {
            self.record_failure(&failure.error);
        }
        result
    }

    /// Calls a script that no request waits for.
    pub(crate) async fn background_call(
        self: &Arc<Self>,
        call: &ScriptCall,
    ) -> Result<Value, Failure> {
        let server = Arc::clone(self);
        let timeout = self.shared.options.background_timeout();
        let dial = async move { Ok(server.dial().await?.with_deadline(timeout)) };
        let link = self.background.get(&self.shared.runtime, dial).await?;
        let result = link.call(call).await;
        match &result {
            Ok(_) => self.note_answer(call),
            Err(failure) => {
                if failure.action == FailureAction::CallRefused {
                    self.note_refusal(call, &failure.error);
                }
                self.background.drop_if_broken(&link, failure).await;
            }
        }
        result
    }
}
