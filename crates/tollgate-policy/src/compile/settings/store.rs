//! `store`, and the TLS of clients.

use crate::compile::fields::{
    duration_us, exactly_one, map_items, number_u32, require_items, required, secret, text, word,
};
use crate::diagnostic::{Report, codes};
use crate::grammar;
use crate::raw::{self, At, File, StoreWord, TimeSource};
use crate::settings::{Redis, RedisServer, RedisUrl, Secret, Store, Tls};
use std::time::Duration;

/// The default of `max_bytes`, and the least that leaves room for the memory store's overflow
/// cells.
const MAX_BYTES: u64 = 256 << 20;
const MAX_BYTES_LEAST: u64 = 64 << 10;
const MS: u64 = 1_000;

/// Defaults of `deadline` and `breaker_probe`. The check of `quiet` needs them even without Redis.
pub(crate) const DEADLINE_US: u64 = 25 * MS;
pub(crate) const PROBE_US: u64 = 500 * MS;

pub(crate) fn store(file: &File, report: &mut Report) -> Store {
    let memory = Store::Memory { max_bytes: MAX_BYTES };
    let Some(field) = &file.store else { return memory };
    match &field.value {
        raw::Store::Word(StoreWord::Memory) => memory,
        raw::Store::Word(StoreWord::Redis) => {
            let message = "`store: redis` does not say where Redis is";
            let help = "write `store: {redis: {url: \"redis://127.0.0.1:6379/0\"}}`";
            report.error(codes::EXACTLY_ONE, field.at, message, help);
            memory
        }
        raw::Store::Form(form) => match (&form.memory, &form.redis) {
            (None, Some(redis)) => Store::Redis(Box::new(self::redis(redis, report))),
            (Some(form), None) => Store::Memory { max_bytes: max_bytes(form, report) },
            // `{memory: }` without a value is the memory store with its defaults.
            (None, None) => memory,
            (Some(_), Some(_)) => {
                exactly_one(&[("memory", true), ("redis", true)], field.at, report);
                memory
            }
        },
    }
}

fn max_bytes(field: &At<raw::Memory>, report: &mut Report) -> u64 {
    let Some(text) = &field.max_bytes else { return MAX_BYTES };
    let Some(bytes) = report.accept(text.at, grammar::size(text)) else { return MAX_BYTES };
    if !(MAX_BYTES_LEAST..=1 << 48).contains(&bytes) {
        crate::compile::fields::out_of_range(text.at, text, "64KiB to 256TiB", report);
    }
    bytes
}

fn redis(field: &At<raw::Redis>, report: &mut Report) -> Redis {
    let unreadable = |name| field.unreadable.contains(&name);
    let given = [
        ("url", field.url.is_some() || unreadable("url")),
        ("sentinel", field.sentinel.is_some() || unreadable("sentinel")),
        ("cluster", field.cluster.is_some() || unreadable("cluster")),
    ];
    exactly_one(&given, field.at, report);
    let tls = field.tls.as_ref().map(|tls| self::tls(tls, report));
    let found = server(field, report);
    let server_tls = found.tls.then(Tls::default);
    let breaker = field.breaker.as_ref();
    let cache = field.deny_cache.as_ref();
    let (errors, probe) = breaker.map(|b| (b.errors.clone(), b.probe.clone())).unwrap_or_default();
    let (entries, max_age) =
        cache.map(|c| (c.entries.clone(), c.max_age.clone())).unwrap_or_default();
    let mut duration = |field, default_ms: u64, range_ms: (u64, u64)| {
        let range_us = (range_ms.0 * MS, range_ms.1 * MS);
        Duration::from_micros(duration_us(field, default_ms * MS, range_us, report))
    };
    let deadline = duration(&field.deadline, 25, (1, 60_000));
    let breaker_probe = duration(&probe, 500, (1, 3_600_000));
    let deny_cache_max_age = duration(&max_age, 1_000, (1, 3_600_000));
    let (username, password) = (text(&field.username, report), secret(&field.password, report));
    let username = credential(found.username, username, (field, "user name"), report);
    let password = credential(found.password, password, (field, "password"), report);
    // The calls to several primaries overlap, so one connection to each is enough. A second one
    // would make calls smaller.
    let connections = if matches!(found.server, RedisServer::Cluster { .. }) { 1 } else { 2 };
    Redis {
        server: found.server,
        username,
        password,
        secret: secret(&field.secret, report),
        tls: tls.or(server_tls),
        prefix: prefix(field, report),
        caller_time: word(&field.time) == TimeSource::Caller,
        deadline,
        connections: number_u32(&field.connections, connections, (1, 1_024), report),
        in_flight: number_u32(&field.in_flight, 10_000, (1, 10_000_000), report),
        replica_reads: field.replica_reads.as_ref().is_some_and(|allowed| allowed.value),
        breaker_errors: number_u32(&errors, 5, (1, 1_000_000), report),
        breaker_probe,
        deny_cache_entries: number_u32(&entries, 100_000, (0, 100_000_000), report),
        deny_cache_max_age,
    }
}

/// The parts of a Redis URL.
struct RedisEndpoint {
    server: RedisServer,
    tls: bool,
    username: Option<Box<str>>,
    password: Option<Secret>,
}

fn server(field: &At<raw::Redis>, report: &mut Report) -> RedisEndpoint {
    let found = |server| RedisEndpoint { server, tls: false, username: None, password: None };
    if let Some(url) = &field.url {
        let parsed = report.accept(url.at, grammar::redis_url(url));
        if let (Some(tls), Some(parsed)) = (&field.tls, &parsed)
            && !matches!(parsed, RedisUrl::Tcp { tls: true, .. })
        {
            let message = "`tls` is given, but the URL does not start with rediss://";
            report.error(codes::TLS_MISMATCH, tls.name_at, message, "write rediss:// in the URL");
        }
        return match parsed {
            Some(RedisUrl::Tcp { tls, host, port, database, username, password }) => {
                let server = RedisServer::Tcp { host, port, database };
                RedisEndpoint { server, tls, username, password }
            }
            Some(RedisUrl::Unix { path, database }) => found(RedisServer::Unix { path, database }),
            None => found(RedisServer::Unix { path: "".into(), database: 0 }),
        };
    }
    if let Some(sentinel) = &field.sentinel {
        let master =
            required(&sentinel.master, "master", (sentinel.at, &sentinel.unreadable), report);
        let nodes = sentinel.nodes.as_ref().map(|nodes| nodes.as_slice()).unwrap_or_default();
        let at = sentinel.nodes.as_ref().map_or(sentinel.at, |nodes| nodes.at);
        require_items(nodes, "nodes", at, report);
        let nodes = map_items(nodes, report, |text| grammar::node(text));
        return found(RedisServer::Sentinel {
            master: master.unwrap_or_default(),
            nodes,
            username: text(&sentinel.username, report),
            password: secret(&sentinel.password, report),
        });
    }
    let mut nodes = Vec::new();
    if let Some(cluster) = &field.cluster {
        require_items(cluster, "cluster", cluster.at, report);
        nodes = map_items(cluster, report, |text| grammar::node(text));
    }
    found(RedisServer::Cluster { nodes })
}

/// Returns a credential from the URL or from the field, and reports both together.
fn credential<T>(
    url: Option<T>,
    own: Option<T>,
    (field, what): (&At<raw::Redis>, &str),
    report: &mut Report,
) -> Option<T> {
    if let (true, true, Some(at)) = (url.is_some(), own.is_some(), &field.url) {
        let message = format!("the {what} is in the URL and in its own field");
        report.error(codes::GIVEN_TWICE, at.at, message, "remove it from the URL");
    }
    own.or(url)
}

pub(crate) fn tls(field: &At<raw::Tls>, report: &mut Report) -> Tls {
    if field.cert.is_some() != field.key.is_some() {
        let message = "`cert` and `key` come together, and only one is given";
        let help = "add the other, or remove both";
        report.error(codes::TLS_MISMATCH, field.at, message, help);
    }
    let (cert, key) = (text(&field.cert, report), text(&field.key, report));
    Tls { ca: text(&field.ca, report), identity: cert.zip(key) }
}

/// Reads `prefix`, which may have no braces: they would change the cluster slot of a key.
fn prefix(field: &At<raw::Redis>, report: &mut Report) -> Box<str> {
    let Some(prefix) = &field.prefix else { return "tg".into() };
    let valid = |c: char| c.is_ascii_graphic() && !matches!(c, '{' | '}');
    if prefix.is_empty() || prefix.len() > 64 || !prefix.chars().all(valid) {
        let range = "1 to 64 printable ASCII characters without spaces and braces";
        crate::compile::fields::out_of_range(prefix.at, prefix, range, report);
    }
    prefix.0.as_str().into()
}
