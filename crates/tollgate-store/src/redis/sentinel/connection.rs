//! One sentinel, and the connection to it.

use super::votes::Primary;
use crate::StoreErrorKind;
use crate::redis::client::control::CachedConnection;
use crate::redis::client::dial::Dialer;
use crate::redis::client::endpoint::ServerAddress;
use crate::redis::client::failure::{Failure, FailureAction};
use redis::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// The deadline of one reply.
const REPLY_DEADLINE: Duration = Duration::from_millis(250);

/// One sentinel, and the connection to it.
#[derive(Debug)]
pub(crate) struct SentinelConnection {
    pub(crate) address: ServerAddress,
    dialer: Arc<Dialer>,
    /// Kept open: it is used about three times a second.
    connection: CachedConnection,
}

impl SentinelConnection {
    pub(crate) fn new(address: ServerAddress, dialer: Arc<Dialer>) -> Self {
        Self { address, dialer, connection: CachedConnection::default() }
    }

    /// Asks which server is the primary of `master`.
    pub(crate) async fn ask(&self, master: &str) -> Result<Primary, Failure> {
        let (dialer, address) = (Arc::clone(&self.dialer), self.address.clone());
        let dial = async move { Ok(dialer.dial(&address).await?.with_deadline(REPLY_DEADLINE)) };
        let link = self.connection.get(&Handle::current(), dial).await?;
        let (mut primary, mut details) = (redis::cmd("SENTINEL"), redis::cmd("SENTINEL"));
        primary.arg("GET-MASTER-ADDR-BY-NAME").arg(master);
        details.arg("MASTER").arg(master);
        let both = (link.command(&primary, false), link.command(&details, false));
        let (primary, details) = futures_util::future::join(both.0, both.1).await;
        if let Err(failure) = &primary {
            self.connection.drop_if_broken(&link, failure).await;
        }
        // If the user has no right to read details, the address alone is accepted.
        let address = self::address(primary?, master)?;
        Ok(Primary { address, epoch: details.ok().and_then(epoch).unwrap_or(0) })
    }
}

fn address(value: Value, master: &str) -> Result<ServerAddress, Failure> {
    let fail =
        |text: &str| Failure::new(StoreErrorKind::Rejected, FailureAction::KeepConnection, text);
    let read = |parts: &[Value]| {
        let [Value::BulkString(host), Value::BulkString(port)] = parts else { return None };
        let host = String::from_utf8(host.clone()).ok()?;
        Some(ServerAddress::Tcp(host, str::from_utf8(port).ok()?.parse().ok()?))
    };
    let found = match value {
        Value::Nil => return Err(fail(&format!("it does not monitor {master}"))),
        Value::Array(parts) => read(&parts),
        _ => None,
    };
    found.ok_or_else(|| fail("it does not answer like a sentinel"))
}

/// The `config-epoch` in a list of names and values.
fn epoch(value: Value) -> Option<u64> {
    let text = |value: &Value| match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    };
    let Value::Array(parts) = value else { return None };
    let is_epoch = |pair: &&[Value]| text(&pair[0]).as_deref() == Some("config-epoch");
    text(parts.chunks_exact(2).find(is_epoch)?.last()?)?.parse().ok()
}
