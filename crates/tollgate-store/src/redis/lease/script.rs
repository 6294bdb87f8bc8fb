//! The lease scripts, their arguments and their replies.

use crate::lease::{
    LEDGER_LUA, LeaseTerms, LedgerReply, LedgerRequest, MarkerOwner, MarkerReading,
    ReplicationStatus,
};
use crate::redis::batch::ScriptTables;
use crate::redis::batch::rows::bytes;
use crate::redis::script::Script;
use crate::redis::script::msgpack::{array, clamp, numbers};
use redis::Value;
use sha2::{Digest, Sha256};
use std::sync::{LazyLock, OnceLock};
use tollgate_core::{LimitParams, lua};

/// The ledger scripts, one per algorithm.
static LEDGERS: [OnceLock<Script>; lua::MIRRORS.len()] =
    [const { OnceLock::new() }; lua::MIRRORS.len()];

/// The ledger script for a limit with these params.
pub(crate) fn ledger(store_params: &LimitParams) -> &'static Script {
    let index = lua::to_lua_params(store_params)[0].saturating_sub(1) as usize;
    let index = index.min(LEDGERS.len() - 1);
    LEDGERS[index].get_or_init(|| Script::new(1 << index, false, [LEDGER_LUA]))
}

pub(crate) fn pack_request(terms: &LeaseTerms, request: &LedgerRequest) -> Vec<u8> {
    array(&request.to_script_args(terms).map(clamp))
}

/// The ledger script for these terms, its packed params and its packed request. For tests that call
/// the script on a server.
pub fn lease_script(
    terms: &LeaseTerms,
    request: &LedgerRequest,
) -> (&'static str, Vec<u8>, Vec<u8>) {
    let mut tables = ScriptTables::default();
    tables.params_index(&terms.store_params);
    let [packed, _] = tables.packed();
    (&ledger(&terms.store_params).text, packed, pack_request(terms, request))
}

/// Reads the ledger script's reply; `None` if it is malformed.
pub fn lease_reply(bytes: &[u8]) -> Option<LedgerReply> {
    LedgerReply::from_script_reply(numbers(bytes)?)
}

/// Reads the marker of a primary.
pub(crate) static MARKER: LazyLock<Script> = LazyLock::new(|| Script::of(crate::lease::MARKER_LUA));

/// Removes a key's state and empties its ledger.
pub(crate) static CLEAR: LazyLock<Script> = LazyLock::new(|| Script::of(crate::lease::CLEAR_LUA));

/// The TTL of a marker: much longer than any grace period.
const MARKER_TTL_MS: &str = "86400000";

/// The reply of the marker script.
#[derive(Debug)]
pub(super) enum MarkerReply {
    Own(MarkerReading),
    OtherServers(OtherServersMarker),
}

/// The marker of another server, and the server that has it now.
#[derive(Debug)]
pub(super) struct OtherServersMarker {
    pub(super) id: u128,
    /// The marker, the run and the history of the server, as texts from the script.
    texts: [String; 3],
    /// The server that wrote the marker; `None` if it hides its ids.
    pub(super) owner: Option<MarkerOwner>,
    /// The current server; `None` if it hides its ids.
    pub(super) server: Option<ReplicationStatus>,
}

/// The arguments of the marker script. A marker in `claim` is replaced by a marker of this age.
pub(super) fn marker_args(claim: Option<(OtherServersMarker, u64)>) -> Vec<u8> {
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
pub(super) fn id_of(text: &str) -> Option<u128> {
    u128::from_str_radix(text.get(..32)?, 16).ok()
}

/// Reads the marker script's reply.
pub(super) fn marker_reply(value: Value) -> Option<MarkerReply> {
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
