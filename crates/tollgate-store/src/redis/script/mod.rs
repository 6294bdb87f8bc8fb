//! The scripts, each composed of what it needs, with the name that Redis knows it by.
//!
//! A script's functions are made anew in every call, so that a batch is decided by a script with no
//! more algorithms than it uses.

pub(super) mod msgpack;

use super::batch::ScriptTables;
use super::batch::single_charge::SingleChargeBatch;
use sha1::{Digest, Sha1};
use std::sync::{LazyLock, OnceLock};
use tollgate_core::{LimitParams, lua};

/// A script and its digest.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) text: String,
    pub(super) sha: String,
}

/// Applies changes that are not subject to admission.
pub(super) static ADJUST: LazyLock<Script> =
    LazyLock::new(|| Script::new(ALL, true, [CELLS, CHANGES, include_str!("adjust.lua")]));
/// Keeps a reservation.
pub(super) static OPEN: LazyLock<Script> =
    LazyLock::new(|| Script::new(ALL, true, [CELLS, RECORD, include_str!("reservation_open.lua")]));
/// Looks for a reservation.
pub(super) static FIND: LazyLock<Script> =
    LazyLock::new(|| Script::new(ALL, true, [CELLS, RECORD, include_str!("reservation_find.lua")]));
/// Keeps what the end of a reservation answered.
pub(super) static SAVE: LazyLock<Script> =
    LazyLock::new(|| Script::new(ALL, true, [CELLS, RECORD, include_str!("reservation_save.lua")]));
/// Ends a reservation.
pub(super) static END: LazyLock<Script> = LazyLock::new(|| {
    Script::new(ALL, true, [CELLS, CHANGES, RECORD, include_str!("reservation_end.lua")])
});
/// Asks a server about itself.
pub(super) static PROBE: LazyLock<Script> =
    LazyLock::new(|| Script::of(include_str!("probe.lua").to_owned()));

/// Decides requests with one charge each, by limits that are no more than a TAT.
static SINGLE: LazyLock<Script> =
    LazyLock::new(|| Script::of(lua::compose([STEP, include_str!("decide_single.lua")])));
/// Those that decide anything, by the algorithms in use, one bit each, whether something is owed,
/// and whether there are penalties.
static DECIDE: [OnceLock<Script>; 4 * (ALL as usize + 1)] =
    [const { OnceLock::new() }; 4 * (ALL as usize + 1)];

const ALL: u8 = u8::MAX >> (8 - lua::MIRRORS.len());
const STEP: &str = include_str!("step.lua");
const NUMBERS: &str = include_str!("params.lua");
const CELLS: &str = include_str!("cells.lua");
const CHANGES: &str = include_str!("changes.lua");
const RECORD: &str = include_str!("reservation_record.lua");
const PLAIN: &str = include_str!("decide_plain.lua");
const TAT: &str = include_str!("decide_tat.lua");
const FULL: &str = include_str!("decide.lua");

/// The script that decides such requests.
pub(super) fn single_charge(_: &SingleChargeBatch) -> &'static Script {
    &SINGLE
}

/// The script that decides any batch with these tables, in which something is owed or not.
pub(super) fn decide(tables: &ScriptTables, owes: bool) -> &'static Script {
    let place = |params: &LimitParams| lua::to_lua_params(params)[0].saturating_sub(1) as u8;
    let used = tables.params.iter().fold(0, |used, one| used | 1 << place(one)) & ALL;
    let punished = !tables.penalties.is_empty();
    let kind = 2 * usize::from(owes) + usize::from(punished);
    DECIDE[4 * usize::from(used) + kind].get_or_init(|| {
        if punished || owes || used & EXPIRY_LOGS != 0 {
            Script::new(used, punished, [CELLS, FULL])
        } else if used & !TATS != 0 {
            Script::new(used, false, [PLAIN])
        } else {
            Script::new(used, false, [TAT])
        }
    })
}

/// Sliding log and concurrency, by their places.
const EXPIRY_LOGS: u8 = 1 << 2 | 1 << 6;
/// Leaky bucket and gcra.
const TATS: u8 = 1 << 4 | 1 << 5;

/// A script that needs nothing else.
pub(super) fn standalone(body: &str) -> Script {
    Script::of(body.to_owned())
}

/// A script of one part that needs only these mirrors.
pub(super) fn with_mirrors(used: u8, body: &str) -> Script {
    Script::new(used, false, [body])
}

impl Script {
    fn new<const N: usize>(used: u8, punished: bool, bodies: [&str; N]) -> Self {
        let is_used = |place: usize| used & 1 << place != 0;
        let mirrors = lua::MIRRORS.iter().enumerate();
        let parts = mirrors.clone().filter(|(place, _)| is_used(*place)).flat_map(|(_, one)| one.1);
        // What is not used still has a name, so that asking for it is no mistake.
        let absent = mirrors.filter(|(place, _)| !is_used(*place)).map(|(_, one)| one.0);
        let absent = absent.chain((!punished).then_some("penalty"));
        let names: String =
            absent.map(|name| format!("local {}\n", name.replace('-', "_"))).collect();
        let penalty = punished.then_some(lua::PENALTY);
        let parts =
            parts.copied().chain(penalty).chain([names.as_str(), STEP, NUMBERS]).chain(bodies);
        Self::of(lua::compose(parts))
    }

    fn of(text: String) -> Self {
        let sha = Sha1::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text, sha }
    }
}
