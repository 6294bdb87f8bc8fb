//! Overrides of modes: for one limit, for the limits of one entry, or for all.

use tollgate_policy::limit::Mode;

/// An operator's mode for limits, instead of the file's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeOverride {
    /// A limit; the entry whose `keys` made several limits; or [`ModeOverride::ALL`].
    pub name: Box<str>,
    /// The mode.
    pub mode: Mode,
}

impl ModeOverride {
    /// The name of an override for all limits.
    pub const ALL: &str = "*";

    /// An override of this name.
    pub fn new(name: &str, mode: Mode) -> Self {
        Self { name: name.into(), mode }
    }

    /// Whether an override of this name is for the limit.
    pub fn covers(name: &str, limit: &str) -> bool {
        let rest = limit.strip_prefix(name);
        name == Self::ALL || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The override that decides for a limit: the last one that covers it.
    pub fn deciding<'a>(overrides: &'a [Self], limit: &str) -> Option<&'a Self> {
        overrides.iter().rfind(|one| Self::covers(&one.name, limit))
    }
}
