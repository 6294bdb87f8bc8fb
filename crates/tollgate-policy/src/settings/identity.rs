//! Settings of identity: client address, attributes, tokens, tiers, refusal text.

use crate::identity::TierMap;

/// The source of an attribute on HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttributeSource {
    /// A header, in lower case.
    Header(Box<str>),
    /// A cookie.
    Cookie(Box<str>),
    /// A query parameter.
    Query(Box<str>),
    /// A claim of a verified token.
    Jwt(Box<str>),
}

/// How tokens are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Jwt {
    /// A file with a JSON Web Key Set.
    pub keys: Box<str>,
    /// The accepted algorithms.
    pub algorithms: Vec<JwtAlgorithm>,
    /// The `iss` that tokens must carry.
    pub issuer: Option<Box<str>>,
    /// The `aud` that tokens must carry.
    pub audience: Option<Box<str>>,
    /// The tolerated clock difference for `exp` and `nbf`.
    pub leeway_us: u64,
}

/// A signature algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of RFC 7518 and RFC 8037")]
pub enum JwtAlgorithm {
    Hs256,
    Rs256,
    Es256,
    EdDsa,
}

/// A template for the body of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Template {
    /// The text, in which `{status}`, `{retry_after}` and `{limits}` are replaced.
    pub body: Box<str>,
    /// The media type.
    pub content_type: Box<str>,
}

/// How the tier of a request is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// The tier of requests without a tier, or with an unknown one.
    pub default: Option<Box<str>>,
    /// The source of a request's tier.
    pub source: Option<TierSource>,
}

/// The source of a request's tier.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TierSource {
    /// An attribute that contains the tier.
    Attribute(Box<str>),
    /// A map from an attribute to the tier, in the policy file.
    Map(TierMap),
    /// A map from an attribute to the tier, in a watched file.
    File {
        /// The path.
        path: Box<str>,
        /// The attribute. If the policy has none, the file names it.
        by: Option<Box<str>>,
    },
    /// A map from an attribute to the tier, in a Redis hash.
    Redis {
        /// The hash.
        hash: Box<str>,
        /// The attribute.
        by: Box<str>,
    },
}
