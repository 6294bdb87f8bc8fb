//! The policy for HTTP requests: client address, attributes, and the body of a refusal.

use super::address::ClientAddressResolver;
use crate::settings::{AttributeSource, Settings, Template};

/// How HTTP requests are identified and refused. The default trusts no proxy and has no attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpPolicy {
    /// How the client's address is found.
    pub client: ClientAddressResolver,
    /// The source of each attribute.
    pub identity: Vec<(Box<str>, AttributeSource)>,
    /// The body of a refusal, if it is not the default.
    pub refusal: Option<Template>,
}

impl HttpPolicy {
    /// Takes the policy from the settings.
    pub fn of(settings: &Settings) -> Self {
        let (identity, refusal) = (settings.identity.clone(), settings.refusal.clone());
        Self { client: settings.client_address.clone(), identity, refusal }
    }

    /// Whether values of this attribute may be secrets, by its source and name. Cookies always are,
    /// claims never. Headers and query parameters are, unless the attribute is in `SHOWN` and the
    /// name does not suggest a secret. Secrets are shown as digests; an API key is a digest
    /// already.
    pub fn holds_secret(&self, attribute: &str) -> bool {
        if attribute == "api_key" {
            return false;
        }
        let source = self.identity.iter().find(|(name, _)| **name == *attribute);
        let (kind, name) = match source.map(|(_, source)| source) {
            Some(AttributeSource::Header(name)) => ("header", &**name),
            Some(AttributeSource::Cookie(name)) => ("cookie", &**name),
            Some(AttributeSource::Query(name)) => ("query", &**name),
            Some(AttributeSource::Jwt(name)) => ("jwt", &**name),
            None => attribute.split_once('.').unwrap_or(("", attribute)),
        };
        match kind {
            "cookie" => true,
            "jwt" => false,
            "header" | "query" => !SHOWN.contains(&attribute) || is_secret(name),
            _ => is_secret(attribute),
        }
    }

    /// Returns the query parameters whose values are secrets: sources of `identity`, and
    /// `query.NAME` among the attributes that the policy uses.
    pub fn secret_parameters<'a>(&'a self, used: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let sources = self.identity.iter().filter_map(|(attribute, source)| match source {
            AttributeSource::Query(name) if &**attribute == "api_key" => Some(&**name),
            AttributeSource::Query(name) if self.holds_secret(attribute) => Some(&**name),
            _ => None,
        });
        let used = used.filter(|attribute| self.holds_secret(attribute));
        sources.chain(used.filter_map(|attribute| attribute.strip_prefix("query."))).collect()
    }
}

/// Attributes whose values are shown, even if `identity` takes them from a header or a query
/// parameter.
const SHOWN: [&str; 4] = ["plan", "tenant", "tier", "user"];

/// Whether the name suggests a secret. If in doubt, yes: then a digest is shown instead of the
/// value.
fn is_secret(name: &str) -> bool {
    const PARTS: [&str; 12] = [
        "apikey",
        "authorization",
        "cookie",
        "credential",
        "csrf",
        "jwt",
        "passw",
        "secret",
        "session",
        "signature",
        "token",
        "xsrf",
    ];
    const WORDS: [&str; 8] = ["bearer", "code", "key", "otp", "pass", "pwd", "sid", "sig"];
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|character: char| !character.is_ascii_alphanumeric());
    PARTS.iter().any(|part| name.contains(part)) || words.any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests;
