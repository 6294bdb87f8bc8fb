//! Reports on a server: version, eviction policy, clock, missing rights.

use super::RedisStore;
use super::batch::ScriptTables;
use super::batch::rows::invalid_reply;
use super::cluster::slot_of;
use super::script::Script;
use super::script::msgpack::array;
use crate::{ProcessClock, StoreError};
use redis::Value;
use std::sync::LazyLock;

static PROBE: LazyLock<Script> = LazyLock::new(|| Script::of(include_str!("probe.lua")));

/// A report on a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerReport {
    /// The server's name and version, such as `redis 7.0.15`.
    pub version: Option<Box<str>>,
    /// The server's mode, `standalone` or `cluster`.
    pub mode: Option<Box<str>>,
    /// The `maxmemory-policy`: any value except `noeviction` may lose counts.
    pub eviction: Option<Box<str>>,
    /// The `maxmemory` setting; 0 means no limit.
    pub memory_bytes_max: Option<u64>,
    /// The duration of one call.
    pub latency_us: u64,
    /// The time by which the server's clock is ahead of this machine's, within half the latency.
    pub clock_ahead_us: i64,
    /// Commands that the store needs and the server refuses, with an error code unless a right is
    /// missing, as in `SET (OOM)`. Also refused keys, as in `~tg:*`. If only some servers of a
    /// cluster refuse, the server follows, as in `SET at 10.0.0.7:6379`.
    pub missing: Vec<Box<str>>,
    /// Primaries of a cluster that need one call per slot. Their scripts cannot use keys of several
    /// slots: they are older than Redis 7.0, or refuse `EVAL_RO`.
    pub by_slot: Vec<Box<str>>,
}

impl ServerReport {
    /// Whether the server never evicts counts. A server that does not report its policy is trusted.
    pub fn keeps_counts(&self) -> bool {
        self.eviction.as_deref().is_none_or(|policy| policy == "noeviction")
    }

    fn refuses(&self, name: &str) -> bool {
        self.missing.iter().any(|one| **one == *name)
    }
}

impl RedisStore {
    /// Queries the server, over the connection that calls use. In a cluster, queries every primary,
    /// as each has its own rights and settings. `leases`: limits will be leased.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or refuses scripts.
    pub async fn probe(&self, leases: bool) -> Result<ServerReport, StoreError> {
        let first = self.probe_with("probe", leases).await?;
        if !self.servers.is_cluster() {
            return Ok(first);
        }
        let mut reports = Vec::new();
        for server in self.servers.primaries() {
            let here = |name: &String| {
                self.servers.serves_slot(slot_of(&self.namer.reservation_key(name)), &server)
            };
            // With this many names, some fall into the slots of any server with a fair share.
            if let Some(name) = (0..1_024).map(|n| format!("probe {n}")).find(here) {
                reports.push((server.name.clone(), self.probe_with(&name, leases).await?));
            }
        }
        let primaries = self.servers.primaries();
        let by_slot = primaries.iter().filter(|server| !server.spans_slots());
        let by_slot = by_slot.map(|server| server.name.clone()).collect();
        Ok(ServerReport { by_slot, ..merge_reports(reports).unwrap_or(first) })
    }

    /// Queries the server that has the reservation `record`.
    async fn probe_with(&self, record: &str, leases: bool) -> Result<ServerReport, StoreError> {
        let leases = i64::from(leases || self.leases.is_enabled());
        let name = self.namer.reservation_key(record);
        let (slot, mut tables) = (slot_of(&name), ScriptTables::default());
        tables.key_index_of(name);
        let asked_us = ProcessClock.now_us();
        let call = self.servers.call(slot, &PROBE, &tables, array(&[leases]), None);
        let reply = self.with_deadline(call).await?;
        let latency_us = ProcessClock.now_us().saturating_sub(asked_us);
        let mut report = read(reply).ok_or_else(invalid_reply)?;
        let keys: Box<str> = format!("~{}:*", self.options.prefix).into();
        for name in report.missing.iter_mut().filter(|name| ***name == *"KEYS") {
            *name = keys.clone();
        }
        self.probe_rights(slot, &tables.keys, &mut report.missing).await;
        report.latency_us = latency_us;
        if !report.refuses("TIME") {
            report.clock_ahead_us -= i64::try_from(asked_us + latency_us / 2).unwrap_or(i64::MAX);
        }
        Ok(report)
    }

    /// Tests commands that a script cannot test: `EVAL` itself, and those that run outside scripts.
    async fn probe_rights(&self, slot: u16, keys: &[Vec<u8>], missing: &mut Vec<Box<str>>) {
        let mut eval = redis::cmd("EVAL");
        eval.arg("return 1").arg(keys.len()).arg(keys);
        let mut wanted = vec![("EVAL", eval), ("PING", redis::cmd("PING"))];
        if self.servers.is_cluster() {
            wanted.push(("ASKING", redis::cmd("ASKING")));
        }
        for (name, command) in wanted {
            let asked = self.with_deadline(self.servers.command(slot, &command)).await;
            if asked.is_err_and(|error| error.detail.contains("NOPERM")) {
                missing.push(name.into());
            }
        }
    }

    /// The value of the first of these fields that a hash has. The hash belongs to the user, so it
    /// has no prefix. One deadline covers all reads.
    ///
    /// # Errors
    ///
    /// If the server did not answer in time.
    pub async fn first_field(
        &self,
        hash: &str,
        fields: &[impl AsRef<str>],
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.with_deadline(async {
            for field in fields {
                // Not in a script: that would need the right to write the key.
                let mut command = redis::cmd("HGET");
                command.arg(hash).arg(field.as_ref());
                match self.servers.command(slot_of(hash.as_bytes()), &command).await? {
                    Value::Nil => {}
                    Value::BulkString(value) => return Ok(Some(value)),
                    _ => return Err(invalid_reply()),
                }
            }
            Ok(None)
        })
        .await
    }
}

/// Merges reports into the worst values. A refusal by only some servers names the server.
fn merge_reports(reports: Vec<(Box<str>, ServerReport)>) -> Option<ServerReport> {
    let count = |name: &str| reports.iter().filter(|(_, one)| one.refuses(name)).count();
    let mut missing: Vec<Box<str>> = Vec::new();
    for (server, report) in &reports {
        missing.extend(report.missing.iter().map(|name| {
            let by_all = count(name) == reports.len();
            if by_all { name.clone() } else { format!("{name} at {server}").into() }
        }));
    }
    missing.sort();
    missing.dedup();
    let each = reports.into_iter().map(|(_, report)| report);
    let worst = each.reduce(|worst, next| ServerReport {
        eviction: if worst.keeps_counts() { next.eviction } else { worst.eviction },
        latency_us: worst.latency_us.max(next.latency_us),
        clock_ahead_us: [next.clock_ahead_us, worst.clock_ahead_us]
            .into_iter()
            .max_by_key(|ahead_us| ahead_us.abs())
            .unwrap_or_default(),
        ..worst
    });
    worst.map(|worst| ServerReport { missing, ..worst })
}

/// Parses a report; `clock_ahead_us` has the server's time.
fn read(reply: Value) -> Option<ServerReport> {
    let Value::Array(parts) = reply else { return None };
    let [seconds, micros, server, memory, missing]: [Value; 5] = parts.try_into().ok()?;
    let number = |value| text(value)?.parse::<i64>().ok();
    let (server, memory) = (text(server)?, text(memory)?);
    let Value::Array(missing) = missing else { return None };
    let of = |info: &str, name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| Box::<str>::from(value.trim()))
    };
    let valkey = of(&server, "valkey_version").map(|version| format!("valkey {version}").into());
    let redis = || of(&server, "redis_version").map(|version| format!("redis {version}").into());
    Some(ServerReport {
        version: valkey.or_else(redis),
        mode: of(&server, "redis_mode").or_else(|| of(&server, "server_mode")),
        eviction: of(&memory, "maxmemory_policy"),
        memory_bytes_max: of(&memory, "maxmemory").and_then(|bytes| bytes.parse().ok()),
        latency_us: 0,
        clock_ahead_us: number(seconds)? * 1_000_000 + number(micros)?,
        missing: missing
            .into_iter()
            .map(|name| text(name).map(String::into_boxed_str))
            .collect::<Option<_>>()?,
        by_slot: Vec::new(),
    })
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        Value::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}
