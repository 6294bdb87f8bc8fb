//! The lease scripts, their arguments and their replies.

use crate::lease::{LEDGER_LUA, LeaseTerms, LedgerReply, LedgerRequest, MarkerReading};
use crate::redis::batch::ScriptTables;
use crate::redis::batch::reply::bytes;
use crate::redis::script::Script;
use crate::redis::script::msgpack::{array, clamp, numbers};
use redis::Value;
use sha2::{Digest, Sha256};
use std::sync::{LazyLock, OnceLock};
use tollgate_core::{LimitParams, lua};

/// The ledger script with one algorithm's mirror each.
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

/// The ledger script for these terms, its packed params and its packed request: for tests that call
/// it on a server.
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

/// The TTL of a marker: much longer than any quiet time.
const MARKER_TTL_MS: &str = "86400000";

pub(crate) fn marker_args() -> Vec<u8> {
    MARKER_TTL_MS.as_bytes().to_vec()
}

/// The identity of a marker.
pub(super) fn marker_id(marker: &[u8]) -> Option<u128> {
    Sha256::digest(marker).first_chunk::<16>().map(|half| u128::from_be_bytes(*half))
}

/// Reads the marker script's reply.
pub(crate) fn marker_reading(value: Value) -> Option<MarkerReading> {
    let Value::Array(parts) = value else { return None };
    let [marker, age] = <[Value; 2]>::try_from(parts).ok()?;
    let run = marker_id(&bytes(marker)??)?;
    let age_us = str::from_utf8(&bytes(age)??).ok()?.parse().ok()?;
    Some(MarkerReading { run, age_us })
}
