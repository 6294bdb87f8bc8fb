//! The ledger's script with the mirrors that it needs, and its words as they travel.

use crate::lease::{LEDGER_LUA, LeaseTerms, LedgerReply, LedgerRequest, MarkerReading};
use crate::redis::batch::ScriptTables;
use crate::redis::batch::reply::bytes;
use crate::redis::script::msgpack::{array, clamp, numbers};
use crate::redis::script::{self, Script};
use redis::Value;
use sha2::{Digest, Sha256};
use std::sync::{LazyLock, OnceLock};
use tollgate_core::{LimitParams, lua};

/// One for each algorithm, since only one is ever needed at a time.
static LEDGERS: [OnceLock<Script>; lua::MIRRORS.len()] =
    [const { OnceLock::new() }; lua::MIRRORS.len()];

/// The script for a limit with these numbers.
pub(crate) fn ledger(central: &LimitParams) -> &'static Script {
    let place = lua::to_lua_params(central)[0].saturating_sub(1) as usize;
    let place = place.min(LEDGERS.len() - 1);
    LEDGERS[place].get_or_init(|| script::with_mirrors(1 << place, LEDGER_LUA))
}

/// What the script is asked, packed.
pub(crate) fn pack_request(terms: &LeaseTerms, ask: &LedgerRequest) -> Vec<u8> {
    array(&ask.to_script_args(terms).map(clamp))
}

/// The text of the script for these terms, its numbers and what it is asked, as they are sent: for
/// whoever wants to try it on a server.
pub fn lease_script(terms: &LeaseTerms, ask: &LedgerRequest) -> (&'static str, Vec<u8>, Vec<u8>) {
    let mut tables = ScriptTables::default();
    tables.params_index(&terms.store_params);
    let [packed, _] = tables.packed();
    (&ledger(&terms.store_params).text, packed, pack_request(terms, ask))
}

/// What the script answered; `None` for what it never does.
pub fn lease_reply(bytes: &[u8]) -> Option<LedgerReply> {
    LedgerReply::from_script_reply(numbers(bytes)?)
}

/// Answers whether a primary is the one it was.
pub(crate) static MARKER: LazyLock<Script> =
    LazyLock::new(|| script::standalone(crate::lease::MARKER_LUA));

/// Has a book say that nothing is held, of a limit whose state is forgotten.
pub(crate) static CLEAR: LazyLock<Script> =
    LazyLock::new(|| script::standalone(crate::lease::CLEAR_LUA));

/// For how long a mark is kept: much longer than any node is quiet.
const MARK_MS: &str = "86400000";

pub(crate) fn marker_args() -> Vec<u8> {
    MARK_MS.as_bytes().to_vec()
}

/// What the mark's script answered.
pub(crate) fn marker_reading(value: Value) -> Option<MarkerReading> {
    let Value::Array(parts) = value else { return None };
    let [mark, age] = <[Value; 2]>::try_from(parts).ok()?;
    let mark = bytes(mark)??;
    let run = Sha256::digest(&mark).first_chunk::<16>().map(|half| u128::from_be_bytes(*half))?;
    let age_us = str::from_utf8(&bytes(age)??).ok()?.parse().ok()?;
    Some(MarkerReading { run, age_us })
}
