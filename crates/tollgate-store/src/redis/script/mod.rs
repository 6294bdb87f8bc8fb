//! The Lua scripts, and MessagePack to and from them.
//!
//! Redis creates a script's functions anew in every call. So the script of a batch contains only
//! the algorithms that the batch uses.

pub(super) mod msgpack;

use super::batch::ScriptTables;
use super::batch::queue::BatchScope;
use sha1::{Digest, Sha1};
use std::sync::{LazyLock, OnceLock};
use tollgate_core::{LimitParams, lua};

/// A script, and its digest in Redis.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) text: String,
    pub(super) sha: String,
}

/// Applies changes that are not subject to admission.
pub(super) static ADJUST: LazyLock<Script> =
    LazyLock::new(|| Script::any_state([CHANGES, include_str!("adjust.lua")]));
/// Resets states, but not their ledgers.
pub(super) static RESET: LazyLock<Script> =
    LazyLock::new(|| Script::any_state(["local STATES = KEYS", RESET_STATES]));
/// The scripts for batches whose charges have [kinds](lua::charge_kind). The index has one bit each
/// for several charges per request, several slots, and windows.
static FAST: [OnceLock<Script>; 8] = [const { OnceLock::new() }; 8];
/// The scripts for any batch. The index has a bit for each algorithm, and one each for several
/// slots, special modes (debts and candidates), and penalties.
static DECIDE: [OnceLock<Script>; 8 * (ALL as usize + 1)] =
    [const { OnceLock::new() }; 8 * (ALL as usize + 1)];

const SHEBANG: &str = "#!lua flags=allow-cross-slot-keys\n";
const ALL: u8 = u8::MAX >> (8 - lua::MIRRORS.len());
pub(super) const STEP: &str = include_str!("step.lua");
const KEPT_HEAD: &str = include_str!("kept_head.lua");
const PARAMS: &str = include_str!("params.lua");
const CELLS: &str = include_str!("cells.lua");
/// The part that applies changes which are not subject to admission.
pub(super) const CHANGES: &str = include_str!("changes.lua");
/// The part that resets `STATES`.
pub(super) const RESET_STATES: &str = include_str!("reset.lua");
const PLAIN: &str = include_str!("decide_plain.lua");
const SINGLE: &str = include_str!("decide_single.lua");
const MANY: &str = include_str!("decide_fast.lua");
const FULL: &str = include_str!("decide.lua");

/// The script for a batch whose charges have [kinds](lua::charge_kind). `single`: every request has
/// one charge.
pub(super) fn fast(single: bool, has_windows: bool, scope: BatchScope) -> &'static Script {
    let spans_slots = scope == BatchScope::Primary;
    FAST[index_of([!single, spans_slots, has_windows])].get_or_init(|| {
        let body = if single { SINGLE } else { MANY }.replace("-- kept_head.lua\n", KEPT_HEAD);
        let parts = has_windows.then_some(lua::MULDIV).into_iter();
        let text = lua::compose(parts.chain([STEP, keys_of(spans_slots), &body]));
        Script::with_span(text, spans_slots)
    })
}

fn index_of<const N: usize>(bits: [bool; N]) -> usize {
    bits.into_iter().fold(0, |index, bit| 2 * index + usize::from(bit))
}

/// The script for a batch with these tables. `has_special_modes`: a charge is a debt or a
/// candidate.
pub(super) fn decide(
    tables: &ScriptTables,
    has_special_modes: bool,
    scope: BatchScope,
) -> &'static Script {
    let spans_slots = scope == BatchScope::Primary;
    let index = |params: &LimitParams| lua::to_lua_params(params)[0].saturating_sub(1) as u8;
    let used = tables.params.iter().fold(0, |used, one| used | 1 << index(one)) & ALL;
    let has_penalties = !tables.penalties.is_empty();
    let kind = index_of([spans_slots, has_special_modes, has_penalties]);
    DECIDE[8 * usize::from(used) + kind].get_or_init(|| {
        let keys = keys_of(spans_slots);
        let text = if has_penalties || has_special_modes || used & EXPIRY_LOGS != 0 {
            compose(used, has_penalties, [CELLS, keys, FULL])
        } else {
            compose(used, false, [keys, PLAIN])
        };
        Script::with_span(text, spans_slots)
    })
}

/// The part that reads every key before any script writes one.
const fn keys_of(spans_slots: bool) -> &'static str {
    if spans_slots { include_str!("keys_given.lua") } else { include_str!("keys_declared.lua") }
}

/// The bits of sliding log and concurrency, by their index in `lua::MIRRORS`.
const EXPIRY_LOGS: u8 = 1 << 2 | 1 << 6;

/// The text of a script with the mirrors of the algorithms in `used`.
fn compose<const N: usize>(used: u8, has_penalties: bool, bodies: [&str; N]) -> String {
    let is_used = |index: usize| used & 1 << index != 0;
    let mirrors = lua::MIRRORS.iter().enumerate();
    let parts = mirrors.clone().filter(|(index, _)| is_used(*index)).flat_map(|(_, one)| one.1);
    // Scripts may test the names of algorithms that they do not contain.
    let absent = mirrors.filter(|(index, _)| !is_used(*index)).map(|(_, one)| one.0);
    let absent = absent.chain((!has_penalties).then_some("penalty"));
    let names: String = absent.map(|name| format!("local {}\n", name.replace('-', "_"))).collect();
    let penalty = has_penalties.then_some(lua::PENALTY);
    let parts = parts.copied().chain(penalty).chain([names.as_str(), STEP, KEPT_HEAD, PARAMS]);
    lua::compose(parts.chain(bodies))
}

impl Script {
    /// Creates a script that reads and writes states of every algorithm, and penalties.
    pub(super) fn any_state<const N: usize>(bodies: [&str; N]) -> Self {
        Self::of(compose(ALL, true, [CELLS, &bodies.join("\n")]))
    }

    /// Creates a script over states of one algorithm, by its index in `lua::MIRRORS`.
    pub(super) fn one_algorithm(index: usize, body: &str) -> Self {
        Self::of(compose(1 << index, false, [body]))
    }

    /// Creates a script that may use keys of several slots, if it `spans_slots`.
    fn with_span(text: String, spans_slots: bool) -> Self {
        Self::of(if spans_slots { format!("{SHEBANG}{text}") } else { text })
    }

    pub(super) fn of(text: impl Into<String>) -> Self {
        let text = text.into();
        let sha = Sha1::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text, sha }
    }
}
