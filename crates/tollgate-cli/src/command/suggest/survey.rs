//! The first two readings of a log: for endpoints, then for clients and their rates.

use super::advice::unit_costs;
use super::endpoint::Endpoints;
use super::rates::PeakRates;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use tollgate_logs::{Field, Record};
use tollgate_policy::address;

/// The prefix length of an IPv6 address that identifies one client, the default of a policy.
const IPV6_PREFIX: u8 = 64;

/// Statistics of a log.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) endpoints: Endpoints,
    pub(super) usage: Vec<EndpointUse>,
    pub(super) requests: u64,
    pub(super) with_user: u64,
    pub(super) from_private: u64,
    /// Requests by hour of the day, in UTC.
    pub(super) by_hour: [u64; 24],
    /// Whether there are requests on each weekday, from Sunday on.
    pub(super) weekdays: [bool; 7],
}

/// Statistics of one endpoint.
#[derive(Debug, Default)]
pub(super) struct EndpointUse {
    pub(super) requests: u64,
    /// The number of responses with a known duration, and the sum of these durations.
    pub(super) timed: u64,
    pub(super) duration_us: u64,
    /// Responses with the status 401 or 403.
    pub(super) denied: u64,
    /// The cost of a request, in units.
    pub(super) units: u64,
    pub(super) rates: PeakRates,
}

/// The attribute that identifies clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientKey {
    User,
    Ip,
}

impl ClientKey {
    /// The name of the attribute.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Ip => "ip",
        }
    }

    /// The plural word for such clients.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::User => "users",
            Self::Ip => "addresses",
        }
    }

    /// A hash of the client of a request.
    fn of(self, record: Record<'_>) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        match self {
            Self::User => {
                Some(record.value(Field::User)).filter(|user| !user.is_empty())?.hash(&mut hasher)
            }
            Self::Ip => {
                let parsed = address::parse(record.value(Field::Ip)).ok()?;
                address::mask(parsed, IPV6_PREFIX).hash(&mut hasher);
            }
        }
        Some(hasher.finish())
    }
}

impl Survey {
    /// The first reading: counts endpoints, durations and hours.
    pub(super) fn first(&mut self, record: Record<'_>) {
        let (method, path) = (record.value(Field::Method), record.value(Field::Path));
        let number = self.endpoints.number(method, path);
        if number == self.usage.len() {
            self.usage.push(EndpointUse { units: 1, ..EndpointUse::default() });
        }
        let usage = &mut self.usage[number];
        usage.requests += 1;
        if let Some(duration_us) = record.duration_us() {
            usage.timed += 1;
            usage.duration_us = usage.duration_us.saturating_add(duration_us);
        }
        usage.denied += u64::from(matches!(record.status(), 401 | 403));
        self.requests += 1;
        self.with_user += u64::from(!record.value(Field::User).is_empty());
        let ip = address::parse(record.value(Field::Ip)).ok();
        self.from_private += u64::from(ip.is_some_and(is_private));
        let hours = record.time_us() / 3_600_000_000;
        self.by_hour[(hours % 24) as usize] += 1;
        self.weekdays[((hours / 24 + 4) % 7) as usize] = true;
    }

    /// Sets the cost of each endpoint. Returns the key that identifies most clients.
    pub(super) fn between(&mut self) -> ClientKey {
        unit_costs(&mut self.usage);
        if 2 * self.with_user > self.requests { ClientKey::User } else { ClientKey::Ip }
    }

    /// The second reading: counts the peak rates of clients, by endpoint and over all endpoints.
    pub(super) fn second(&mut self, record: Record<'_>, key: ClientKey, all: &mut PeakRates) {
        let Some(client) = key.of(record) else { return };
        let (method, path) = (record.value(Field::Method), record.value(Field::Path));
        let Some(number) = self.endpoints.known(method, path) else { return };
        let usage = &mut self.usage[number];
        all.count(client, record.time_us(), usage.units);
        // Logins are limited by address, since a client chooses the user name it sends.
        let own = if usage.is_login(self.endpoints.get(number).0) { ClientKey::Ip } else { key };
        if let Some(client) = own.of(record) {
            usage.rates.count(client, record.time_us(), 1);
        }
    }
}

impl EndpointUse {
    /// The mean duration of a response.
    pub(super) fn mean_us(&self) -> Option<u64> {
        self.duration_us.checked_div(self.timed)
    }

    /// Whether passwords are guessed here: many POST requests are denied.
    pub(super) fn is_login(&self, method: &str) -> bool {
        method == "POST" && self.requests >= 20 && 10 * self.denied >= self.requests
    }
}

/// Whether an address is in a private network.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_private() || address.is_loopback(),
        IpAddr::V6(address) => address.is_unique_local() || address.is_loopback(),
    }
}
