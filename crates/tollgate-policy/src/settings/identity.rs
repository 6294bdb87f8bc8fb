//! Settings of identity: client address, attributes, tokens, tiers, refusal text.

use crate::identity::TierMap;

/// Where an attribute comes from on HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttributeSource {
    /// A header field, in lower case.
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
    /// The signatures that count.
    pub algorithms: Vec<JwtAlgorithm>,
    /// The `iss` that tokens must carry.
    pub issuer: Option<Box<str>>,
    /// The `aud` that tokens must carry.
    pub audience: Option<Box<str>>,
    /// How far clocks may differ for `exp` and `nbf`.
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
    /// Its media type.
    pub content_type: Box<str>,
}

/// Which tier a request belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// The tier of requests without one, or with an unknown one.
    pub default: Option<Box<str>>,
    /// Where a request's tier is found.
    pub source: Option<TierSource>,
}

/// Where a request's tier is found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TierSource {
    /// An attribute names it.
    Attribute(Box<str>),
    /// The policy file itself maps an attribute to it.
    Map(TierMap),
    /// A watched file maps an attribute to it.
    File {
        /// Its path.
        path: Box<str>,
        /// The attribute; the file itself names it where the policy does not.
        by: Option<Box<str>>,
    },
    /// A Redis hash maps an attribute to it.
    Redis {
        /// The hash.
        hash: Box<str>,
        /// The attribute.
        by: Box<str>,
    },
}
