//! Labels: the fixed label values of counters.

use tollgate::engine::{SingleVerdict, Source, Verdict};
use tollgate_tower::Refusal;

/// Declares an enumeration whose values are the values of a label.
macro_rules! labels {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$about])* $value,)+
        }

        impl $name {
            /// All values, in order of declaration.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// The value of the label.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }
    };
}

labels! {
    /// How a request ended.
    Outcome {
        /// All limits admitted it.
        Admitted = "admitted",
        /// A limit refused it.
        Refused = "refused",
        /// The store failed, and a limit with `on_store_failure: closed` refused it.
        FailClosed = "fail_closed",
        /// A shedder refused it, because the service is overloaded.
        Shed = "shed",
        /// A success without a decision: a settlement, a cancellation, an admin call.
        Ok = "ok",
        /// The request was malformed. The client has to change it.
        Invalid = "invalid",
        /// This process failed.
        Error = "error",
        /// The client left before its answer.
        Abandoned = "abandoned",
    }
}

impl Outcome {
    /// The outcome of a decision on a request.
    #[inline]
    pub fn of_verdict(verdict: &Verdict<'_>) -> Self {
        Self::of_source(verdict.allowed, verdict.source)
    }

    /// The outcome of a request that is refused.
    pub fn of_refusal(refusal: &Refusal) -> Self {
        Self::of_source(false, refusal.source)
    }

    /// The outcome of a decision by one limit.
    #[inline]
    pub fn of_single(verdict: &SingleVerdict) -> Self {
        Self::of_source(verdict.allowed, verdict.source)
    }

    #[inline]
    fn of_source(is_allowed: bool, source: Source) -> Self {
        match (is_allowed, source) {
            (true, _) => Self::Admitted,
            (false, Source::Shed) => Self::Shed,
            (false, Source::FailClosed) => Self::FailClosed,
            (false, _) => Self::Refused,
        }
    }
}

labels! {
    /// How a reload ended.
    ReloadResult {
        /// The new file is in force.
        Ok = "ok",
        /// The new file is bad, and the last good one stays in force.
        Error = "error",
    }
}

labels! {
    /// Why the admin API denied a call.
    AdminDenial {
        /// No token is configured.
        Disabled = "disabled",
        /// The call has no token.
        Missing = "missing",
        /// The call has a wrong token.
        Wrong = "wrong",
        /// The address sent too many wrong tokens.
        Limited = "limited",
        /// The `Host` of the call is not a name of the listener.
        Host = "host",
    }
}

labels! {
    /// Why an upstream gave no response.
    UpstreamFailure {
        /// No connection could be made.
        Connect = "connect",
        /// The response broke off or was malformed.
        Protocol = "protocol",
        /// The response took too long.
        Timeout = "timeout",
    }
}
