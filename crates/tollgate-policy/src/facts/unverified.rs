//! Reasons why an attribute of a request was not verified.

use std::fmt;

/// Why the token of a request did not verify: the token is present, and its claims are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unverified {
    /// The credentials are not one token, or the token is not a JSON Web Token.
    Malformed,
    /// The request carries two different `Authorization` headers.
    Ambiguous,
    /// The token is longer than a token may be.
    TooLong,
    /// The header names an algorithm that is not accepted, or an extension.
    Algorithm,
    /// No key of the file has the key id of the token.
    Key,
    /// No key verifies the signature.
    Signature,
    /// The token is past its `exp`.
    Expired,
    /// The token is before its `nbf`.
    NotYetValid,
    /// The token is from another issuer.
    Issuer,
    /// The token is for another audience.
    Audience,
    /// A claim has the wrong type.
    Claim,
    /// There is no key to verify tokens with.
    NoKeys,
}

impl Unverified {
    /// The reason for programs, as in `X-Tollgate-Reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "token-malformed",
            Self::Ambiguous => "token-ambiguous",
            Self::TooLong => "token-too-long",
            Self::Algorithm => "token-algorithm",
            Self::Key => "token-unknown-key",
            Self::Signature => "token-signature",
            Self::Expired => "token-expired",
            Self::NotYetValid => "token-not-yet-valid",
            Self::Issuer => "token-issuer",
            Self::Audience => "token-audience",
            Self::Claim => "token-claim",
            Self::NoKeys => "token-no-keys",
        }
    }
}

/// Writes a sentence for people, without quotes or backslashes, so that JSON can contain it
/// unescaped.
impl fmt::Display for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => {
                "The bearer token is malformed. Send one signed token as Authorization: Bearer TOKEN."
            }
            Self::Ambiguous => "The request has two different Authorization headers. Send one.",
            Self::TooLong => "The bearer token is too long.",
            Self::Algorithm => {
                "The bearer token is signed in a way that is not accepted here. Get a new one."
            }
            Self::Key => "The bearer token names a key that is not known here. Get a new one.",
            Self::Signature => "The signature of the bearer token is wrong. Get a new one.",
            Self::Expired => "The bearer token has expired. Get a new one.",
            Self::NotYetValid => "The bearer token is not valid yet.",
            Self::Issuer => "The bearer token is from another issuer.",
            Self::Audience => "The bearer token is for another audience.",
            Self::Claim => "A claim of the bearer token has the wrong type.",
            Self::NoKeys => "Bearer tokens cannot be verified here: no keys are configured.",
        })
    }
}
