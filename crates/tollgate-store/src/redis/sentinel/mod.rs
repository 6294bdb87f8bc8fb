//! Sentinels: find the primary, and notice when another server takes over.
//!
//! All sentinels are asked at once, and none is trusted alone. The primary is the server that most
//! of them name; if too few answer, the newest configuration epoch decides. A server is used only
//! if its own ROLE is that of a primary. Sentinels are asked for every connection, and about three
//! times a second: a replaced primary still accepts writes for seconds. When they name another
//! primary, all connections to the old one are closed.

mod connection;
mod votes;

use super::RedisOptions;
use super::client::connection::Link;
use super::client::dial::Dialer;
use super::client::endpoint::ServerAddress;
use super::client::failure::{Failure, FailureAction};
use super::client::supervise::jitter;
use crate::StoreErrorKind;
use connection::SentinelConnection;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use redis::Value;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use votes::{Primary, Votes};

/// The time to wait for other sentinels after the first answer, unless most agree earlier.
const GRACE: Duration = Duration::from_millis(100);
/// The deadline of one sentinel, connecting included.
const ASK_MOST: Duration = Duration::from_secs(1);
/// The longest interval between polls of the sentinels; the shortest is half of it.
const LOOK: Duration = Duration::from_millis(400);
/// Limit of connection attempts while the primary keeps changing.
const TRIES_MOST: usize = 3;

/// The sentinels of one primary.
#[derive(Debug)]
pub(super) struct Sentinels {
    master: Arc<str>,
    connections: Vec<Arc<SentinelConnection>>,
    /// The primary in use.
    primary: watch::Sender<Option<Primary>>,
    options: Arc<RedisOptions>,
    /// The runtime of the connections to sentinels.
    runtime: Handle,
}

/// Signals a connection when another server becomes the primary.
#[derive(Debug)]
pub(super) struct PrimaryWatch {
    primary: watch::Receiver<Option<Primary>>,
    address: ServerAddress,
}

impl PrimaryWatch {
    pub(super) fn has_moved(&self) -> bool {
        has_left(&self.primary.borrow(), &self.address)
    }

    pub(super) async fn moved(&self) {
        // An error means that the store is being dropped.
        let _ = self.primary.clone().wait_for(|primary| has_left(primary, &self.address)).await;
    }
}

fn has_left(primary: &Option<Primary>, address: &ServerAddress) -> bool {
    primary.as_ref().is_some_and(|primary| primary.address != *address)
}

impl Sentinels {
    pub(super) fn new(
        master: &str,
        servers: &[ServerAddress],
        dialer: Dialer,
        options: &Arc<RedisOptions>,
    ) -> Self {
        let dialer = Arc::new(dialer);
        let connection = |address: &ServerAddress| {
            Arc::new(SentinelConnection::new(address.clone(), Arc::clone(&dialer)))
        };
        Self {
            master: master.into(),
            connections: servers.iter().map(connection).collect(),
            primary: watch::Sender::new(None),
            options: Arc::clone(options),
            runtime: Handle::current(),
        }
    }

    pub(super) fn master(&self) -> &str {
        &self.master
    }

    /// Connects to the primary.
    pub(super) async fn dial(&self, dialer: &Dialer, cut_off: bool) -> Result<Link, Failure> {
        for _ in 0..TRIES_MOST {
            // Read before the sentinels are asked, so that an old answer does not undo a change.
            let before = self.primary.borrow().clone();
            let votes = self.ask().await;
            let candidates = votes.candidates(before.as_ref(), cut_off);
            let (link, primary) = connect_to_first(dialer, candidates)
                .await
                .map_err(|failure| failure.unwrap_or_else(|| votes.failure(&self.master)))?;
            let address = primary.address.clone();
            if self.adopt_primary(before.as_ref(), primary) {
                let primary = self.primary.subscribe();
                return Ok(link.while_primary(PrimaryWatch { primary, address }));
            }
        }
        Err(unreachable("the sentinels keep changing the primary"))
    }

    /// Polls the sentinels, and switches to another primary when they name one.
    pub(super) async fn watch_primary(&self, dialer: &Dialer) {
        loop {
            sleep(jitter(LOOK)).await;
            let before = self.primary.borrow().clone();
            let Some(current) = &before else { continue };
            let Some(named) = self.ask().await.new_primary(current) else { continue };
            let same = named.address == current.address;
            if same || connect_to_primary(dialer, &named.address).await.is_ok() {
                self.adopt_primary(Some(current), named);
            }
        }
    }

    /// Asks all sentinels at once, until most agree.
    async fn ask(&self) -> Votes {
        let mut votes = Votes::new(self.connections.len());
        let ask = |(n, connection): (usize, &Arc<SentinelConnection>)| {
            let (connection, master) = (Arc::clone(connection), Arc::clone(&self.master));
            // A separate task detects a dead connection even after the others have agreed.
            let task =
                self.runtime.spawn(async move { timeout(ASK_MOST, connection.ask(&master)).await });
            async move { (n, task.await) }
        };
        let mut asked: FuturesUnordered<_> = self.connections.iter().enumerate().map(ask).collect();
        let (mut answered, mut over) = (false, pin!(sleep(ASK_MOST * 2)));
        while votes.majority().is_none() {
            let next = tokio::select! {
                next = asked.next() => next,
                () = &mut over => None,
            };
            let Some((n, answer)) = next else { break };
            match answer {
                Ok(Ok(Ok(primary))) => {
                    votes.add(primary);
                    if !std::mem::replace(&mut answered, true) {
                        over.set(sleep(GRACE));
                    }
                }
                Ok(Ok(Err(failure))) => votes.fail(&self.connections[n].address, failure.error),
                Ok(Err(_)) | Err(_) => {
                    votes.fail(&self.connections[n].address, Failure::timeout().error);
                }
            }
        }
        votes
    }

    /// Adopts `named` as the primary, unless another task has changed the primary since `before`.
    fn adopt_primary(&self, before: Option<&Primary>, named: Primary) -> bool {
        let address = named.address.clone();
        let mut agreed = true;
        let moved = self.primary.send_if_modified(|primary| match primary {
            Some(now) if now.address == named.address => {
                now.epoch = now.epoch.max(named.epoch);
                false
            }
            now if now.as_ref().map(|now| &now.address) != before.map(|before| &before.address) => {
                agreed = false;
                false
            }
            now => now.replace(named).is_some(),
        });
        if moved {
            let address = address.to_string();
            self.options.notify(|observer| observer.primary_changed(&self.master, &address));
        }
        agreed
    }
}

/// Connects to the first candidate that is a primary. On failure, returns the first error.
async fn connect_to_first(
    dialer: &Dialer,
    candidates: Vec<Primary>,
) -> Result<(Link, Primary), Option<Failure>> {
    let mut failed = None;
    for primary in candidates {
        match connect_to_primary(dialer, &primary.address).await {
            Ok(link) => return Ok((link, primary)),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    Err(failed)
}

/// Connects to a server, and checks that its ROLE is that of a primary.
async fn connect_to_primary(dialer: &Dialer, address: &ServerAddress) -> Result<Link, Failure> {
    let link = dialer.dial(address).await?;
    let role = match link.command(&redis::cmd("ROLE"), false).await {
        // Without this right, a replica is noticed when it refuses a write.
        Err(failure) if failure.error.detail.starts_with("NOPERM") => return Ok(link),
        role => role?,
    };
    let is_primary = match role {
        Value::Array(parts) => {
            matches!(parts.first(), Some(Value::BulkString(role)) if role == b"master")
        }
        _ => false,
    };
    let text = || format!("the sentinels name {address}, which is a replica");
    is_primary.then_some(link).ok_or_else(|| unreachable(&text()))
}

fn unreachable(text: &str) -> Failure {
    Failure::new(StoreErrorKind::Unreachable, FailureAction::Reconnect, text)
}
