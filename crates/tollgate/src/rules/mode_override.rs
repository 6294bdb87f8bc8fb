//! Mode overrides: for one limit, for the limits of one entry, or for all.

use tollgate_policy::limit::{Mode, is_named};

/// An operator's mode for limits, which replaces the file's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeOverride {
    /// The name of a limit, of an entry whose `keys` made several limits, or [`ModeOverride::ALL`].
    pub name: Box<str>,
    /// The mode.
    pub mode: Mode,
}

impl ModeOverride {
    /// The name of an override for all limits.
    pub const ALL: &str = "*";

    /// Creates an override for this name.
    pub fn new(name: &str, mode: Mode) -> Self {
        Self { name: name.into(), mode }
    }

    /// Whether an override with this name applies to the limit.
    pub fn covers(name: &str, limit: &str) -> bool {
        name == Self::ALL || is_named(limit, name)
    }

    /// The override that decides for a limit: the last one that applies.
    pub fn deciding<'a>(overrides: &'a [Self], limit: &str) -> Option<&'a Self> {
        overrides.iter().rfind(|one| Self::covers(&one.name, limit))
    }
}
