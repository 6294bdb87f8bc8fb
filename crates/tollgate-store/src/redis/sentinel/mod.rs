//! The primary that the sentinels name, and the move to another one.
//!
//! All sentinels are asked at once, and no single one is relied on. A server counts as the primary
//! when most of them name it; where too few answer for that, the newest of their configurations
//! decides. Whatever they say, a server is used only if it says itself that it is a primary. They
//! are asked for every connection, and about three times a second besides, because a primary that
//! was replaced on purpose goes on taking writes for seconds: all connections to it are given up
//! once they name another.

mod connection;
mod votes;

use super::RedisOptions;
use super::client::connection::Link;
use super::client::dial::Dialer;
use super::client::endpoint::ServerAddress;
use super::client::failure::{Failure, FailureAction};
use super::client::supervise::jitter;
use crate::{StoreError, StoreErrorKind};
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

/// How long the others have once one has answered, unless most agree before.
const GRACE: Duration = Duration::from_millis(100);
/// How long asking one may take, a new connection to it included.
const ASK_MOST: Duration = Duration::from_secs(1);
/// How often they are asked whether the primary is still the same: at the latest after this, at the
/// earliest after half of it.
const LOOK: Duration = Duration::from_millis(400);
/// How often a connection is tried again because the primary changed meanwhile.
const TRIES_MOST: usize = 3;

/// Those who know where the primary is.
#[derive(Debug)]
pub(super) struct Sentinels {
    master: Arc<str>,
    connections: Vec<Arc<SentinelConnection>>,
    /// The primary that is relied on.
    primary: watch::Sender<Option<Primary>>,
    options: Arc<RedisOptions>,
    /// Where connections to them live, whoever asks.
    runtime: Handle,
}

/// A connection's stay at a server, which is over once another one is the primary.
#[derive(Debug)]
pub(super) struct PrimaryWatch {
    primary: watch::Receiver<Option<Primary>>,
    address: ServerAddress,
}

impl PrimaryWatch {
    pub(super) fn has_moved(&self) -> bool {
        has_left(&self.primary.borrow(), &self.address)
    }

    /// Waits until it is over.
    pub(super) async fn moved(&self) {
        // An error means that the store is gone.
        let _ = self.primary.clone().wait_for(|settled| has_left(settled, &self.address)).await;
    }
}

fn has_left(settled: &Option<Primary>, address: &ServerAddress) -> bool {
    settled.as_ref().is_some_and(|primary| primary.address != *address)
}

impl Sentinels {
    /// On the runtime that this is called in.
    pub(super) fn new(
        master: &str,
        nodes: &[ServerAddress],
        dialer: Dialer,
        options: &Arc<RedisOptions>,
    ) -> Self {
        let dialer = Arc::new(dialer);
        let desk = |node: &ServerAddress| {
            Arc::new(SentinelConnection::new(node.clone(), Arc::clone(&dialer)))
        };
        Self {
            master: master.into(),
            connections: nodes.iter().map(desk).collect(),
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
            // Read before anybody is asked, so that an answer from before a change does not undo
            // it.
            let before = self.primary.borrow().clone();
            let votes = self.ask().await;
            let choices = votes.candidates(before.as_ref(), cut_off);
            let reached = first(dialer, choices).await;
            let (link, primary) =
                reached.map_err(|why| why.unwrap_or_else(|| votes.failure(&self.master)))?;
            let address = primary.address.clone();
            if self.adopt_primary(before.as_ref(), primary) {
                let settled = self.primary.subscribe();
                return Ok(link.while_primary(PrimaryWatch { primary: settled, address }));
            }
        }
        Err(primary_keeps_changing())
    }

    /// Looks again and again whether the primary is still the same.
    pub(super) async fn watch_primary(&self, dialer: &Dialer) {
        loop {
            sleep(jitter(LOOK)).await;
            let before = self.primary.borrow().clone();
            let Some(settled) = &before else { continue };
            let Some(named) = self.ask().await.new_primary(settled) else { continue };
            let same = named.address == settled.address;
            if same || connect_to_primary(dialer, &named.address).await.is_ok() {
                self.adopt_primary(Some(settled), named);
            }
        }
    }

    /// Asks all of them at once, until most agree. One that does not answer holds nobody up.
    async fn ask(&self) -> Votes {
        let mut votes = Votes::new(self.connections.len());
        let ask = |desk: &Arc<SentinelConnection>| {
            let (desk, master) = (Arc::clone(desk), Arc::clone(&self.master));
            // Goes on by itself, so that a connection without answers is found out although nobody
            // waits for it any more.
            let asked = async move { timeout(ASK_MOST, desk.ask(&master)).await };
            self.runtime.spawn(asked)
        };
        let spawned: Vec<_> = self.connections.iter().map(ask).collect();
        let numbered = spawned.into_iter().enumerate();
        let mut asked: FuturesUnordered<_> =
            numbered.map(|(n, task)| async move { (n, task.await) }).collect();
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

    /// Relies on a server from now on, unless somebody has settled on another one since `before`.
    fn adopt_primary(&self, before: Option<&Primary>, named: Primary) -> bool {
        let address = named.address.clone();
        let mut agreed = true;
        let moved = self.primary.send_if_modified(|settled| match settled {
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

/// Connects to the first of them that is a primary, or says what the first of them had against it.
async fn first(dialer: &Dialer, choices: Vec<Primary>) -> Result<(Link, Primary), Option<Failure>> {
    let mut failed = None;
    for primary in choices {
        match connect_to_primary(dialer, &primary.address).await {
            Ok(link) => return Ok((link, primary)),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    Err(failed)
}

/// Connects to a server that says itself that it is a primary.
async fn connect_to_primary(dialer: &Dialer, address: &ServerAddress) -> Result<Link, Failure> {
    let link = dialer.dial(address).await?;
    let role = match link.command(&redis::cmd("ROLE"), false).await {
        // A user without the right to ask: a replica shows when it refuses to write.
        Err(failure) if failure.error.detail.starts_with("NOPERM") => return Ok(link),
        role => role?,
    };
    let is_primary = match role {
        Value::Array(parts) => {
            matches!(parts.first(), Some(Value::BulkString(role)) if role == b"master")
        }
        _ => false,
    };
    is_primary.then_some(link).ok_or_else(|| {
        let text = format!("the sentinels name {address}, which is a replica");
        let error = StoreError::new(StoreErrorKind::Unreachable, text);
        Failure { error, action: FailureAction::Reconnect }
    })
}

fn primary_keeps_changing() -> Failure {
    let text = "the sentinels name one primary after another";
    let error = StoreError::new(StoreErrorKind::Unreachable, text);
    Failure { error, action: FailureAction::Reconnect }
}
