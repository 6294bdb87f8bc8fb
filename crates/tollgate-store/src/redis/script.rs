//! The scripts, each composed of the mirrors it needs, with the name that Redis knows it by.

use sha1::{Digest, Sha1};
use std::sync::LazyLock;
use tollgate_core::lua;

/// A script and its digest.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) text: String,
    pub(super) sha: String,
}

/// Decides a batch of requests.
pub(super) static DECIDE: LazyLock<Script> =
    LazyLock::new(|| Script::new(&[include_str!("script/decide.lua")]));
/// Applies changes that are not subject to admission.
pub(super) static ADJUST: LazyLock<Script> =
    LazyLock::new(|| Script::new(&[CHANGES, include_str!("script/adjust.lua")]));
/// Keeps a reservation.
pub(super) static OPEN: LazyLock<Script> =
    LazyLock::new(|| Script::new(&[RECORD, include_str!("script/open.lua")]));
/// Looks for a reservation.
pub(super) static FIND: LazyLock<Script> =
    LazyLock::new(|| Script::new(&[RECORD, include_str!("script/find.lua")]));
/// Keeps what the end of a reservation answered.
pub(super) static SAVE: LazyLock<Script> =
    LazyLock::new(|| Script::new(&[RECORD, include_str!("script/save.lua")]));
/// Asks a server about itself.
pub(super) static PROBE: LazyLock<Script> =
    LazyLock::new(|| Script::alone(include_str!("script/probe.lua")));
/// Ends a reservation.
pub(super) static END: LazyLock<Script> =
    LazyLock::new(|| Script::new(&[CHANGES, RECORD, include_str!("script/end.lua")]));

const CELLS: &str = include_str!("script/cells.lua");
const CHANGES: &str = include_str!("script/changes.lua");
const RECORD: &str = include_str!("script/record.lua");

impl Script {
    fn new(parts: &[&str]) -> Self {
        let mirrors = lua::MIRRORS.iter().flat_map(|mirror| mirror.1.iter().copied());
        let text = lua::compose(mirrors.chain([lua::PENALTY, CELLS]).chain(parts.iter().copied()));
        Self::of(text)
    }

    /// One that decides nothing.
    fn alone(text: &str) -> Self {
        Self::of(text.to_owned())
    }

    fn of(text: String) -> Self {
        let sha = Sha1::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text, sha }
    }
}
