//! What a file says about HTTP.

use super::address;
use super::address::ClientAddressResolver;
use crate::settings::{AddressSource, AttributeSource, Settings, Template};

/// Who a request over HTTP is from, and what its refusal says. The default trusts nobody and knows
/// no identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpPolicy {
    /// Where the client's address is found.
    pub client: ClientAddressResolver,
    /// Where attributes come from.
    pub identity: Vec<(Box<str>, AttributeSource)>,
    /// What clients read when they are refused, where it is not the usual.
    pub refusal: Option<Template>,
}

impl HttpPolicy {
    /// By these settings.
    pub fn of(settings: &Settings) -> Self {
        let mut client = ClientAddressResolver::default();
        client.trusted.clone_from(&settings.trusted_proxies);
        client.ipv6_prefix = settings.client_address.ipv6_prefix;
        client.source = match &settings.client_address.source {
            AddressSource::Header(name) => address::ClientAddressSource::Header(name.clone()),
            AddressSource::Hops(hops) => address::ClientAddressSource::Hops(*hops),
        };
        Self { client, identity: settings.identity.clone(), refusal: settings.refusal.clone() }
    }

    /// Whether values of this attribute may be secrets, by its name and by where it comes from.
    /// They are shown as their digest. An API key is its digest already, and a claim is not the
    /// token.
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
            _ => is_secret(name) || is_secret(attribute),
        }
    }
}

/// Whether an attribute with this name is likely a secret. A wrong yes shows a digest; a wrong no
/// shows a secret.
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
