//! The ledger's script with the mirrors that it needs, and its words as they travel.

use super::super::batch::Tables;
use super::super::pack::{array, clamp, numbers};
use super::super::reply::bytes;
use super::super::script::{self, Script};
use crate::lease::{Ask, LEDGER_LUA, Reply, Sighting, Terms};
use redis::Value;
use sha2::{Digest, Sha256};
use std::sync::{LazyLock, OnceLock};
use tollgate_core::{Numbers, lua};

/// One for each algorithm, since only one is ever needed at a time.
static LEDGERS: [OnceLock<Script>; lua::MIRRORS.len()] =
    [const { OnceLock::new() }; lua::MIRRORS.len()];

/// The script for a limit with these numbers.
pub(in crate::redis) fn ledger(central: &Numbers) -> &'static Script {
    let place = lua::mirrored(central)[0].saturating_sub(1) as usize;
    let place = place.min(LEDGERS.len() - 1);
    LEDGERS[place].get_or_init(|| script::with(1 << place, LEDGER_LUA))
}

/// What the script is asked, packed.
pub(in crate::redis) fn program(terms: &Terms, ask: &Ask) -> Vec<u8> {
    array(&ask.mirrored(terms).map(clamp))
}

/// The text of the script for these terms, its numbers and what it is asked, as they are sent: for whoever wants to try it on a server.
pub fn lease_script(terms: &Terms, ask: &Ask) -> (&'static str, Vec<u8>, Vec<u8>) {
    let mut tables = Tables::default();
    tables.numbers(&terms.central);
    let [packed, _] = tables.packed();
    (&ledger(&terms.central).text, packed, program(terms, ask))
}

/// What the script answered; `None` for what it never does.
pub fn lease_reply(bytes: &[u8]) -> Option<Reply> {
    Reply::read(numbers(bytes)?)
}

/// Answers whether a primary is the one it was.
pub(in crate::redis) static MARK: LazyLock<Script> =
    LazyLock::new(|| script::alone(crate::lease::MARK_LUA));

/// Has a book say that nothing is held, of a limit whose state is forgotten.
pub(in crate::redis) static CLEAR: LazyLock<Script> =
    LazyLock::new(|| script::alone(crate::lease::CLEAR_LUA));

/// For how long a mark is kept: much longer than any node is quiet.
const MARK_MS: &str = "86400000";

pub(in crate::redis) fn mark_program() -> Vec<u8> {
    MARK_MS.as_bytes().to_vec()
}

/// What the mark's script answered.
pub(in crate::redis) fn sighting(value: Value) -> Option<Sighting> {
    let Value::Array(parts) = value else { return None };
    let [mark, age] = <[Value; 2]>::try_from(parts).ok()?;
    let mark = bytes(mark)??;
    let run = Sha256::digest(&mark).first_chunk::<16>().map(|half| u128::from_be_bytes(*half))?;
    let age_us = str::from_utf8(&bytes(age)??).ok()?.parse().ok()?;
    Some(Sighting { run, age_us })
}
