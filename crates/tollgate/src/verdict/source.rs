//! Where a decision came from.

use tollgate_policy::limit::{Limit, Mode};
use tollgate_store::{Answer, Origin};

/// The provenance that every answer carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The shared store decided.
    Store,
    /// The memory store decided.
    Memory,
    /// A chunk taken in advance was spent.
    Lease,
    /// A recent refusal was remembered.
    DenyCache,
    /// The store could not decide and the limit lets requests pass then.
    FailOpen,
    /// The store could not decide and the limit refuses requests then.
    FailClosed,
    /// The store could not decide and this node enforced its share.
    LocalFallback,
    /// A shadow limit would have refused.
    Shadow,
    /// A penalty's block.
    Blocked,
    /// No limit applied.
    None,
}

impl Source {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Memory => "memory",
            Self::Lease => "lease",
            Self::DenyCache => "deny-cache",
            Self::FailOpen => "fail-open",
            Self::FailClosed => "fail-closed",
            Self::LocalFallback => "local-fallback",
            Self::Shadow => "shadow",
            Self::Blocked => "blocked",
            Self::None => "none",
        }
    }

    /// Of one limit's answer by a store whose answers come from `usual`.
    pub(crate) fn of(limit: &Limit, answer: &Answer, usual: Self) -> Self {
        match (answer.blocked, limit.mode) {
            (true, _) => Self::Blocked,
            (false, Mode::Shadow) if !answer.outcome.admitted => Self::Shadow,
            (false, _) => match answer.origin {
                Origin::State => usual,
                Origin::Lease => Self::Lease,
                Origin::CachedRefusal => Self::DenyCache,
                Origin::GracePeriod if answer.outcome.admitted => Self::FailOpen,
                Origin::GracePeriod => Self::FailClosed,
            },
        }
    }

    /// Whether a limit's state decided, or no limit applied. Any other source is worth a header.
    pub const fn is_usual(self) -> bool {
        matches!(self, Self::Store | Self::Memory | Self::Lease | Self::None)
    }

    /// Whether the store could not be asked.
    pub(crate) const fn is_without_store(self) -> bool {
        matches!(self, Self::FailOpen | Self::FailClosed | Self::LocalFallback)
    }

    /// Among the sources of an admitted request the most telling one wins.
    const fn rank(self) -> u8 {
        match self {
            Self::FailOpen => 0,
            Self::LocalFallback => 1,
            Self::Shadow => 2,
            Self::Lease => 3,
            Self::Store => 4,
            Self::Memory => 5,
            _ => 6,
        }
    }

    /// The source to show for an admitted request whose limits came from `sources`.
    pub(crate) fn of_admitted(sources: impl Iterator<Item = Self>) -> Self {
        sources.min_by_key(|source| source.rank()).unwrap_or(Self::None)
    }
}
