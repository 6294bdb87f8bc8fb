//! One sentinel, and the connection to it.

use super::votes::Primary;
use crate::redis::client::connection::Link;
use crate::redis::client::dial::Dialer;
use crate::redis::client::endpoint::ServerAddress;
use crate::redis::client::failure::{Failure, FailureAction};
use crate::{StoreError, StoreErrorKind};
use redis::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long an answer may take.
const ANSWER_MOST: Duration = Duration::from_millis(250);

/// One sentinel.
#[derive(Debug)]
pub(crate) struct SentinelConnection {
    pub(crate) address: ServerAddress,
    dialer: Arc<Dialer>,
    /// Kept, since it is used about three times a second.
    link: Mutex<Option<Arc<Link>>>,
}

impl SentinelConnection {
    pub(crate) fn new(address: ServerAddress, dialer: Arc<Dialer>) -> Self {
        Self { address, dialer, link: Mutex::default() }
    }

    /// Asks which server is the primary.
    pub(crate) async fn ask(&self, master: &str) -> Result<Primary, Failure> {
        let link = self.link().await?;
        let (mut place, mut about) = (redis::cmd("SENTINEL"), redis::cmd("SENTINEL"));
        place.arg("GET-MASTER-ADDR-BY-NAME").arg(master);
        about.arg("MASTER").arg(master);
        let both = (link.command(&place, false), link.command(&about, false));
        let (place, about) = futures_util::future::join(both.0, both.1).await;
        if place.as_ref().is_err_and(|failure| failure.action == FailureAction::Reconnect) {
            self.link.lock().await.take_if(|own| Arc::ptr_eq(own, &link));
        }
        let address = address(place?, master)?;
        // A user may lack the right to ask for more than the address, which is no reason not to
        // believe it.
        Ok(Primary { address, epoch: about.ok().and_then(epoch).unwrap_or(0) })
    }

    async fn link(&self) -> Result<Arc<Link>, Failure> {
        let mut own = self.link.lock().await;
        if let Some(link) = own.as_ref().filter(|link| !link.is_closed()) {
            return Ok(Arc::clone(link));
        }
        *own = None;
        let link = Arc::new(self.dialer.dial(&self.address).await?.with_deadline(ANSWER_MOST));
        *own = Some(Arc::clone(&link));
        Ok(link)
    }
}

fn address(value: Value, master: &str) -> Result<ServerAddress, Failure> {
    let fail = |text: String| {
        let error = StoreError::new(StoreErrorKind::Rejected, text);
        Failure { error, action: FailureAction::KeepConnection }
    };
    let read = |parts: &[Value]| {
        let [Value::BulkString(host), Value::BulkString(port)] = parts else { return None };
        let host = String::from_utf8(host.clone()).ok()?;
        Some(ServerAddress::Tcp(host, str::from_utf8(port).ok()?.parse().ok()?))
    };
    let found = match value {
        Value::Nil => return Err(fail(format!("it watches nothing that is called {master}"))),
        Value::Array(parts) => read(&parts),
        _ => None,
    };
    found.ok_or_else(|| fail("it does not answer as a sentinel does".into()))
}

/// The number of the configuration that made the server the primary: names and values take turns.
fn epoch(value: Value) -> Option<u64> {
    let text = |value: &Value| match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    };
    let Value::Array(parts) = value else { return None };
    let is_epoch = |pair: &&[Value]| text(&pair[0]).as_deref() == Some("config-epoch");
    text(parts.chunks_exact(2).find(is_epoch)?.last()?)?.parse().ok()
}
