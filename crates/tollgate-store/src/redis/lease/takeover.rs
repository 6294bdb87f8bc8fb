//! Takeovers: checks a primary whose marker another server wrote.
//!
//! The old primary may prove that the new one has all its writes. Then the marker keeps its age,
//! and no grace period begins. A process that cannot prove this waits a moment for other processes.

use super::Leases;
use super::primary_monitors::PrimaryReading;
use crate::StoreError;
use crate::lease::{MARKER_LUA, MarkerOwner, MarkerReading, ReplicationStatus, TakeoverWait};
use crate::redis::batch::ScriptTables;
use crate::redis::batch::connection_task::REDIRECTS_MAX;
use crate::redis::batch::rows::{bytes, invalid_reply};
use crate::redis::client::Servers;
use crate::redis::client::connection::Link;
use crate::redis::client::failure::FailureAction;
use crate::redis::client::server::Server;
use crate::redis::script::Script;
use redis::Value;
use sha2::{Digest, Sha256};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::time::sleep;

/// Number of polls of an old primary, to learn whether it has joined the new one. The time counts
/// as part of the grace period that follows.
const POLLS: u32 = 100;
/// The pause between two polls.
const POLL: Duration = Duration::from_millis(5);

/// Number of markers of each primary of a cluster, in different slots: any of them may move.
const MARKERS: usize = 4;

/// Reads the marker of a primary.
static MARKER: LazyLock<Script> = LazyLock::new(|| Script::of(MARKER_LUA));
/// The TTL of a marker: much longer than any grace period.
const MARKER_TTL_MS: &str = "86400000";

/// The server that wrote a marker, as far as this process knows it.
struct OldPrimary {
    /// The age of the marker.
    age_us: u64,
    link: Link,
}

/// The reply of the marker script.
#[derive(Debug)]
enum MarkerReply {
    Own(MarkerReading),
    OtherServers(OtherServersMarker),
}

/// The marker of another server, and the server that has it now.
#[derive(Debug)]
struct OtherServersMarker {
    id: u128,
    /// The marker, the run and the history of the server, as texts from the script.
    texts: [String; 3],
    /// The server that wrote the marker; `None` if it hides its ids.
    owner: Option<MarkerOwner>,
    /// The current server; `None` if it hides its ids.
    server: Option<ReplicationStatus>,
}

impl Leases {
    /// Reads the marker of a primary, and claims the marker of another server.
    pub(super) async fn look_at_primary(
        &self,
        servers: &Arc<Servers>,
        server: &Arc<Server>,
    ) -> Result<PrimaryReading, StoreError> {
        let (mut wait, mut claim, mut replaced) = (TakeoverWait::default(), None, None);
        let (mut old_primary, mut polls) = (None, 0);
        loop {
            let (sent_us, dials) = (self.clock.now_us(), server.connects());
            let (key, reply) = self.call_marker_script(servers, server, 0, claim.take()).await?;
            let has_moved = self.monitors.has_marker_moved(server, &key);
            let foreign = match reply {
                MarkerReply::Own(reading) => {
                    let mut age_us = reading.age_us;
                    for index in 1..MARKERS {
                        let spare = self.spare_age_us(servers, server, index, has_moved).await;
                        age_us = age_us.max(spare);
                    }
                    let marker = MarkerReading { age_us, replaced, ..reading };
                    return Ok(PrimaryReading { sent_us, dials, key, marker });
                }
                // The marker came with its slot, and says nothing about this server.
                MarkerReply::OtherServers(foreign) if has_moved => {
                    claim = Some((foreign, 0));
                    continue;
                }
                MarkerReply::OtherServers(foreign) => foreign,
            };
            let waited_us = wait.waited_us(foreign.texts.clone(), self.clock.now_us());
            if replaced.replace(foreign.id).is_none() {
                self.monitors.begin_takeover(server);
                old_primary = self.find_old_primary(servers, server, foreign.id).await;
            }
            let handed_over = match &old_primary {
                Some(old) => old.has_handed_over(&foreign).await,
                // Another process may know the old primary of a cluster.
                None if server.cluster().is_some() => None,
                None => Some(false),
            };
            match (handed_over, &old_primary) {
                (Some(true), Some(old)) => claim = Some((foreign, old.age_us)),
                (None, _) if polls < POLLS => {
                    polls += 1;
                    sleep(POLL).await;
                }
                _ => claim = Some((foreign, waited_us)),
            }
        }
    }

    /// The age of a spare marker if the first one moved, else zero. Writes the spare one if it is
    /// missing.
    ///
    /// A server that was emptied has no marker. So an old spare marker proves that a server whose
    /// first marker is now in another slot lost nothing.
    async fn spare_age_us(
        &self,
        servers: &Arc<Servers>,
        server: &Arc<Server>,
        index: usize,
        has_moved: bool,
    ) -> u64 {
        let Some(key) = server.marker_key(index) else { return 0 };
        let now_us = self.clock.now_us();
        if !has_moved && !self.monitors.is_spare_due(server, &key, now_us) {
            return 0;
        }
        let mut claim = None;
        loop {
            let called = self.call_marker_script(servers, server, index, claim.take());
            match called.await {
                Ok((_, MarkerReply::OtherServers(foreign))) => claim = Some((foreign, 0)),
                Ok((key, MarkerReply::Own(reading))) => {
                    self.monitors.record_spare(server, key, now_us);
                    return if has_moved { reading.age_us } else { 0 };
                }
                // The next check tries again.
                Err(_) => return 0,
            }
        }
    }

    /// Calls the marker script, which replaces the marker of another server by one of this age. If
    /// the slot of the marker has moved, the server gets a marker in another slot. Also returns the
    /// marker's key.
    async fn call_marker_script(
        &self,
        servers: &Arc<Servers>,
        server: &Arc<Server>,
        index: usize,
        claim: Option<(OtherServersMarker, u64)>,
    ) -> Result<(Vec<u8>, MarkerReply), StoreError> {
        let (args, mut redirects) = (marker_args(claim), 0);
        loop {
            let key = self.marker_key(server, index).await.ok_or_else(invalid_reply)?;
            let mut tables = ScriptTables::default();
            tables.key_index_of(key.clone());
            let call = servers.script_call(&MARKER, &tables, args.clone(), None);
            let failure = match server.background_call(&call).await {
                Ok(value) => {
                    let reply = marker_reply(value).ok_or_else(invalid_reply)?;
                    return Ok((key, reply));
                }
                Err(failure) => failure,
            };
            if failure.action == FailureAction::NotPrimary {
                server.record_failure(&failure.error);
            }
            if !failure.is_redirection() || redirects == REDIRECTS_MAX {
                return Err(failure.error);
            }
            redirects += 1;
            self.monitors.marker_moved(server);
            server.record_redirect(&key, &failure.action);
        }
    }

    /// The name of the marker key, after a refresh of the slot map if a slot moved. A server that
    /// took over has all slots of the old one, and the marker is in the first of them.
    async fn marker_key(&self, server: &Arc<Server>, index: usize) -> Option<Vec<u8>> {
        for poll in 0..POLLS {
            if let key @ Some(_) = server.marker_key(index) {
                return key;
            }
            if poll == 0 {
                self.monitors.marker_moved(server);
            }
            sleep(POLL).await;
        }
        None
    }

    /// Connects to the server whose marker this process knows, unless it is `new` itself.
    async fn find_old_primary(
        &self,
        servers: &Arc<Servers>,
        new: &Arc<Server>,
        marker: u128,
    ) -> Option<OldPrimary> {
        let (address, age_us) = self.monitors.primary_with(marker, self.clock.now_us())?;
        if new.is_at(&address) {
            return None;
        }
        let shared = servers.shared();
        let link = shared.dialer.dial(&address).await.ok()?;
        let link = link.with_deadline(shared.options.background_timeout());
        Some(OldPrimary { age_us, link })
    }
}

impl OldPrimary {
    /// Whether the server with the marker has all writes that this one acknowledged; `None` if that
    /// is not known yet.
    async fn has_handed_over(&self, foreign: &OtherServersMarker) -> Option<bool> {
        let (owner, new) = (foreign.owner?, foreign.server?);
        let info = self.link.command(&redis::cmd("INFO"), false).await;
        let text = info.ok().and_then(bytes).flatten();
        let old = text.as_deref().and_then(|text| parse_status(std::str::from_utf8(text).ok()?));
        old.map_or(Some(false), |old| owner.has_handed_over(&new, &old))
    }
}

/// Parses the `INFO` of a server.
fn parse_status(info: &str) -> Option<ReplicationStatus> {
    let field = |name: &str| {
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let id = |name: &str| id_of(field(name)?);
    Some(ReplicationStatus {
        run: id("run_id")?,
        is_replica: field("role")? != "master",
        history: id("master_replid")?,
        previous: id("master_replid2")?,
        previous_end: field("second_repl_offset")?.parse().ok()?,
    })
}

/// The arguments of the marker script. A marker in `claim` is replaced by a marker of this age.
fn marker_args(claim: Option<(OtherServersMarker, u64)>) -> Vec<u8> {
    let Some((foreign, age_us)) = claim else { return MARKER_TTL_MS.as_bytes().to_vec() };
    let [marker, run, history] = &foreign.texts;
    format!("{MARKER_TTL_MS} {marker} {run} {history} {age_us}").into_bytes()
}

/// The id of a marker: its server and its time. The history between them may change.
pub(super) fn marker_id(marker: &[u8]) -> Option<u128> {
    let mut parts = marker.split(|byte| *byte == b':');
    let (run, since) = (parts.next()?, parts.nth(1)?);
    let digest = Sha256::new().chain_update(run).chain_update(b":").chain_update(since).finalize();
    digest.first_chunk::<16>().map(|half| u128::from_be_bytes(*half))
}

/// Parses a Redis id of 40 hexadecimal digits; the first 32 suffice.
fn id_of(text: &str) -> Option<u128> {
    u128::from_str_radix(text.get(..32)?, 16).ok()
}

/// Reads the marker script's reply.
fn marker_reply(value: Value) -> Option<MarkerReply> {
    let Value::Array(parts) = value else { return None };
    let texts = parts.into_iter().map(|part| String::from_utf8(bytes(part)??).ok());
    let texts = texts.collect::<Option<Vec<_>>>()?;
    match <[String; 2]>::try_from(texts) {
        Ok([marker, age]) => Some(MarkerReply::Own(MarkerReading {
            run: marker_id(marker.as_bytes())?,
            age_us: age.parse().ok()?,
            replaced: None,
        })),
        Err(texts) => foreign_marker(texts).map(MarkerReply::OtherServers),
    }
}

fn foreign_marker(texts: Vec<String>) -> Option<OtherServersMarker> {
    let [marker, run, history, previous, previous_end] = <[String; 5]>::try_from(texts).ok()?;
    let mut parts = marker.split(':').map(id_of);
    let owner = || Some(MarkerOwner { run: parts.next()??, history: parts.next()?? });
    let server = || {
        Some(ReplicationStatus {
            run: id_of(&run)?,
            is_replica: false,
            history: id_of(&history)?,
            previous: id_of(&previous)?,
            previous_end: previous_end.parse().ok()?,
        })
    };
    Some(OtherServersMarker {
        id: marker_id(marker.as_bytes())?,
        owner: { owner }(),
        server: server(),
        texts: [marker, run, history],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_server_is_read() {
        let info = "# Server\r\nrun_id:00000000000000000000000000000001aaaaaaaa\r\n# Replication\r\n\
            role:slave\r\nmaster_replid:00000000000000000000000000000002bbbbbbbb\r\n\
            master_replid2:0000000000000000000000000000000000000000\r\nsecond_repl_offset:-1\r\n";
        let status = parse_status(info);
        let expected = ReplicationStatus {
            run: 1,
            is_replica: true,
            history: 2,
            previous: 0,
            previous_end: -1,
        };
        assert_eq!(status, Some(expected));
        assert_eq!(parse_status("# Server\r\nrun_id:1\r\n"), None);
    }
}
