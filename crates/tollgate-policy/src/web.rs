//! What a file says about HTTP.

use crate::address::{self, ClientAddress};
use crate::settings::{AddressSource, Settings, Source, Template};

/// Who a request over HTTP is from, and what its refusal says. The default trusts nobody and knows no identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Web {
    /// Where the client's address is found.
    pub client: ClientAddress,
    /// Where attributes come from.
    pub identity: Vec<(Box<str>, Source)>,
    /// What clients read when they are refused, where it is not the usual.
    pub refusal: Option<Template>,
}

impl Web {
    /// By these settings.
    pub fn of(settings: &Settings) -> Self {
        let mut client = ClientAddress::default();
        client.trusted.clone_from(&settings.trusted_proxies);
        client.ipv6_prefix = settings.client_address.ipv6_prefix;
        client.source = match &settings.client_address.source {
            AddressSource::Header(name) => address::Source::Header(name.clone()),
            AddressSource::Hops(hops) => address::Source::Hops(*hops),
        };
        Self { client, identity: settings.identity.clone(), refusal: settings.refusal.clone() }
    }
}
