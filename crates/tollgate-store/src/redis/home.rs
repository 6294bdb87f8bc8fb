//! Where a server is at the moment.

use super::dial::Dialer;
use super::endpoint::Address;
use super::failure::Failure;
use crate::{StoreError, StoreErrorKind};
use redis::Value;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where a server is: always at the same address, or where the sentinels say.
#[derive(Debug)]
pub(super) enum Home {
    Fixed(Address),
    Sentinels(Sentinels),
}

/// Those who know where the primary is.
#[derive(Debug)]
pub(super) struct Sentinels {
    pub(super) master: String,
    pub(super) nodes: Vec<Address>,
    pub(super) dialer: Dialer,
    /// The one that knew last time, which is asked first.
    pub(super) last: AtomicUsize,
}

impl Home {
    pub(super) async fn find(&self) -> Result<Address, Failure> {
        match self {
            Self::Fixed(address) => Ok(address.clone()),
            Self::Sentinels(sentinels) => sentinels.find().await,
        }
    }

    /// What it is called in logs.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Fixed(address) => address.to_string(),
            Self::Sentinels(sentinels) => sentinels.master.clone(),
        }
    }
}

impl Sentinels {
    async fn find(&self) -> Result<Address, Failure> {
        let (first, many) = (self.last.load(Ordering::Relaxed), self.nodes.len());
        for place in (first..first + many).map(|place| place % many) {
            if let Some(address) = self.ask(&self.nodes[place]).await {
                self.last.store(place, Ordering::Relaxed);
                return Ok(address);
            }
        }
        let text = "no sentinel says where the primary is; check their addresses and its name";
        let error = StoreError::new(StoreErrorKind::Unreachable, text);
        Err(Failure { error, then: super::failure::Then::Reconnect })
    }

    async fn ask(&self, node: &Address) -> Option<Address> {
        let link = self.dialer.dial(node).await.ok()?;
        let mut command = redis::cmd("SENTINEL");
        command.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.master);
        let Ok(Value::Array(parts)) = link.command(&command, false).await else { return None };
        let [Value::BulkString(host), Value::BulkString(port)] = parts.as_slice() else {
            return None;
        };
        let host = String::from_utf8(host.clone()).ok()?;
        let port = str::from_utf8(port).ok()?.parse().ok()?;
        Some(Address::Tcp(host, port))
    }
}
