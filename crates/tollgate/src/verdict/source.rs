//! The source of a decision.

use tollgate_policy::limit::{Limit, Mode, OnStoreFailure};
use tollgate_store::{Answer, Origin};

/// The source of a decision: a store, a lease, the deny cache, or a failure policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The shared store decided.
    Store,
    /// The memory store decided.
    Memory,
    /// A lease decided: units taken from the store in advance.
    Lease,
    /// The deny cache remembered a refusal.
    DenyCache,
    /// The store failed, and the limit fails open.
    FailOpen,
    /// The store failed, and the limit fails closed.
    FailClosed,
    /// The store failed, and this node enforced its share of the limit.
    LocalFallback,
    /// A shadow limit would have refused.
    Shadow,
    /// A block refused: a penalty's or an operator's.
    Blocked,
    /// A shedder refused.
    Shed,
    /// No limit applied.
    None,
}

impl Source {
    /// The name on the wire.
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
            Self::Shed => "shed",
            Self::None => "none",
        }
    }

    /// The source of one limit's answer; `usual` is the usual source of the store's answers, and
    /// `failure_policy` decided if the store failed.
    pub(crate) fn of(
        limit: &Limit,
        answer: &Answer,
        usual: Self,
        failure_policy: impl FnOnce() -> OnStoreFailure,
    ) -> Self {
        if answer.blocked {
            return Self::Blocked;
        }
        if !answer.outcome.admitted && limit.mode == Mode::Shadow {
            return Self::Shadow;
        }
        match answer.origin {
            Origin::State => usual,
            Origin::Lease => Self::Lease,
            Origin::CachedRefusal => Self::DenyCache,
            Origin::GracePeriod => Self::FailClosed,
            Origin::Failed(_) => match failure_policy() {
                OnStoreFailure::Open => Self::FailOpen,
                // A closed limit admits a charge of no units.
                OnStoreFailure::Closed if answer.outcome.admitted => Self::FailOpen,
                OnStoreFailure::Closed => Self::FailClosed,
                OnStoreFailure::Local { .. } | OnStoreFailure::LocalRate(_) => Self::LocalFallback,
            },
        }
    }

    /// Whether a limit's state decided, or no limit applied. Any other source is shown in a header.
    pub const fn is_usual(self) -> bool {
        matches!(self, Self::Store | Self::Memory | Self::Lease | Self::None)
    }

    /// Whether the store failed.
    pub(crate) const fn is_without_store(self) -> bool {
        matches!(self, Self::FailOpen | Self::FailClosed | Self::LocalFallback)
    }

    /// The rank of a source for an admitted request; the most informative has the lowest rank.
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

    /// The source to show for a refused request, from the sources of the limits that refuse it. A
    /// limit that failed closed makes the answer a 503, so it comes before the others.
    pub(crate) fn of_refused(mut sources: impl Iterator<Item = Self>) -> Self {
        let Some(first) = sources.next() else { return Self::None };
        if sources.any(|source| source == Self::FailClosed) { Self::FailClosed } else { first }
    }

    /// The source to show for an admitted request, from the sources of its limits.
    pub(crate) fn of_admitted(sources: impl Iterator<Item = Self>) -> Self {
        let is_shown = |first: Self, other: Self| first == other || first.rank() <= other.rank();
        let shown = |first, other| if is_shown(first, other) { first } else { other };
        sources.reduce(shown).unwrap_or(Self::None)
    }
}
