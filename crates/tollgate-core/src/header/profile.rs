//! Profiles: the generations of RateLimit headers.

/// One generation of RateLimit headers, as named under `headers` in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// Drafts -08 to -11: lists of named items, with every limit.
    Draft11,
    /// Draft -07: one dictionary, with the tightest limit only.
    Draft7,
    /// Drafts up to -06: one header for each number, seconds from now, the tightest limit only.
    Draft6,
    /// The three numbers of drafts up to -06 without policies, so that they can be combined with
    /// another draft.
    RateLimit,
    /// `X-RateLimit-*` with the reset as seconds since the Unix epoch.
    XRateLimitEpoch,
    /// `X-RateLimit-*` with the reset as seconds from now.
    XRateLimitDelta,
    /// The headers of GitHub: the epoch form, with the units used and the name of the limit.
    GitHub,
    /// The headers of Discord: fractional resets in both forms, a bucket and, on refusals, a scope.
    Discord,
    /// No headers.
    None,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 9] = [
        Self::Draft11,
        Self::Draft7,
        Self::Draft6,
        Self::RateLimit,
        Self::XRateLimitEpoch,
        Self::XRateLimitDelta,
        Self::GitHub,
        Self::Discord,
        Self::None,
    ];

    /// Finds a profile by its name in the file.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// The name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft11 => "draft-11",
            Self::Draft7 => "draft-7",
            Self::Draft6 => "draft-6",
            Self::RateLimit => "ratelimit",
            Self::XRateLimitEpoch => "x-ratelimit-epoch",
            Self::XRateLimitDelta => "x-ratelimit-delta",
            Self::GitHub => "github",
            Self::Discord => "discord",
            Self::None => "none",
        }
    }

    /// All headers that the profile may write, in order of writing.
    pub const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Draft11 | Self::Draft7 => &[name::POLICY, name::RATELIMIT],
            Self::Draft6 => &[name::POLICY, name::LIMIT, name::REMAINING, name::RESET],
            Self::RateLimit => &[name::LIMIT, name::REMAINING, name::RESET],
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

    /// Returns a header that both profiles write, in which case a response cannot have both.
    pub fn shared_field(self, other: Self) -> Option<&'static str> {
        self.fields().iter().copied().find(|field| other.fields().contains(field))
    }
}

/// The spelling of header names, which are case-insensitive on the wire.
pub(super) mod name {
    /// The name of a header, and the start of its line in HTTP/1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Name {
        pub(crate) text: &'static str,
        pub(crate) opening: &'static str,
    }

    macro_rules! names {
        ($($constant:ident $text:literal $opening:literal;)*) => {
            $(pub(crate) const $constant: &str = $text;)*
            /// The names as constants, each with the start of its line.
            pub(crate) mod line {
                use super::Name;
                $(pub(crate) const $constant: Name = Name { text: $text, opening: $opening };)*
                #[cfg(test)]
                pub(crate) const ALL: &[Name] = &[$($constant),*];
            }
        };
    }

    names! {
        POLICY "RateLimit-Policy" "ratelimit-policy: ";
        RATELIMIT "RateLimit" "ratelimit: ";
        LIMIT "RateLimit-Limit" "ratelimit-limit: ";
        REMAINING "RateLimit-Remaining" "ratelimit-remaining: ";
        RESET "RateLimit-Reset" "ratelimit-reset: ";
        X_LIMIT "X-RateLimit-Limit" "x-ratelimit-limit: ";
        X_REMAINING "X-RateLimit-Remaining" "x-ratelimit-remaining: ";
        X_USED "X-RateLimit-Used" "x-ratelimit-used: ";
        X_RESET "X-RateLimit-Reset" "x-ratelimit-reset: ";
        X_RESET_AFTER "X-RateLimit-Reset-After" "x-ratelimit-reset-after: ";
        X_POLICY "X-RateLimit-Policy" "x-ratelimit-policy: ";
        X_RESOURCE "X-RateLimit-Resource" "x-ratelimit-resource: ";
        X_BUCKET "X-RateLimit-Bucket" "x-ratelimit-bucket: ";
        X_SCOPE "X-RateLimit-Scope" "x-ratelimit-scope: ";
        RETRY_AFTER "Retry-After" "retry-after: ";
    }
}
