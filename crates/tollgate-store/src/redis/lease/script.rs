//! The ledger's script with the mirrors that it needs, and its words as they travel.

use super::super::batch::Tables;
use super::super::pack::{array, clamp, numbers};
use super::super::script::{self, Script};
use crate::lease::{Ask, LEDGER_LUA, Reply, Terms};
use std::sync::OnceLock;
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
