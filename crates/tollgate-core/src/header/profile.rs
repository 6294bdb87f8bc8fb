//! Which generation of the fields an answer carries.

/// One generation of rate-limit fields, as named under `headers` in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// Drafts -08 to -11: lists of named items, every limit in each.
    Draft11,
    /// Draft -07: one dictionary, the tightest limit only.
    Draft7,
    /// Drafts up to -06: one field per number, seconds from now, the tightest limit only.
    Draft6,
    /// `X-RateLimit-*` with the reset as seconds since the Unix epoch.
    XRateLimitEpoch,
    /// `X-RateLimit-*` with the reset as seconds from now.
    XRateLimitDelta,
    /// What GitHub sends: the epoch form, with the units used and the limit's name.
    GitHub,
    /// What Discord sends: fractional resets in both forms, a bucket and, on refusals, a scope.
    Discord,
    /// No fields at all.
    None,
}

impl Profile {
    /// Every profile there is.
    pub const ALL: [Self; 8] = [
        Self::Draft11,
        Self::Draft7,
        Self::Draft6,
        Self::XRateLimitEpoch,
        Self::XRateLimitDelta,
        Self::GitHub,
        Self::Discord,
        Self::None,
    ];

    /// The profile of that name, as the file spells it.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// The name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft11 => "draft-11",
            Self::Draft7 => "draft-7",
            Self::Draft6 => "draft-6",
            Self::XRateLimitEpoch => "x-ratelimit-epoch",
            Self::XRateLimitDelta => "x-ratelimit-delta",
            Self::GitHub => "github",
            Self::Discord => "discord",
            Self::None => "none",
        }
    }

    /// Every field the profile may write, in the order in which it writes them.
    pub const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Draft11 | Self::Draft7 => &[name::POLICY, name::RATELIMIT],
            Self::Draft6 => &[name::POLICY, name::LIMIT, name::REMAINING, name::RESET],
            Self::XRateLimitEpoch | Self::XRateLimitDelta => {
                &[name::X_LIMIT, name::X_REMAINING, name::X_RESET, name::X_POLICY]
            }
            Self::GitHub => {
                &[name::X_LIMIT, name::X_REMAINING, name::X_USED, name::X_RESET, name::X_RESOURCE]
            }
            Self::Discord => &[
                name::X_LIMIT,
                name::X_REMAINING,
                name::X_RESET,
                name::X_RESET_AFTER,
                name::X_BUCKET,
                name::X_SCOPE,
            ],
            Self::None => &[],
        }
    }

    /// A field that both profiles write, so that an answer cannot carry both.
    pub fn shared_field(self, other: Self) -> Option<&'static str> {
        self.fields().iter().copied().find(|field| other.fields().contains(field))
    }
}

/// The spelling of every field; names compare without case on the wire.
pub(super) mod name {
    pub(crate) const POLICY: &str = "RateLimit-Policy";
    pub(crate) const RATELIMIT: &str = "RateLimit";
    pub(crate) const LIMIT: &str = "RateLimit-Limit";
    pub(crate) const REMAINING: &str = "RateLimit-Remaining";
    pub(crate) const RESET: &str = "RateLimit-Reset";
    pub(crate) const X_LIMIT: &str = "X-RateLimit-Limit";
    pub(crate) const X_REMAINING: &str = "X-RateLimit-Remaining";
    pub(crate) const X_USED: &str = "X-RateLimit-Used";
    pub(crate) const X_RESET: &str = "X-RateLimit-Reset";
    pub(crate) const X_RESET_AFTER: &str = "X-RateLimit-Reset-After";
    pub(crate) const X_POLICY: &str = "X-RateLimit-Policy";
    pub(crate) const X_RESOURCE: &str = "X-RateLimit-Resource";
    pub(crate) const X_BUCKET: &str = "X-RateLimit-Bucket";
    pub(crate) const X_SCOPE: &str = "X-RateLimit-Scope";
    pub(crate) const RETRY_AFTER: &str = "Retry-After";
}
