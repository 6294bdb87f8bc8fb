//! The first two readings of a log: what is asked for, then by whom and how often.

use super::advice::unit_costs;
use super::endpoint::Endpoints;
use super::rates::PeakRates;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use tollgate_logs::{Field, Record};
use tollgate_policy::address;

/// The bits of an IPv6 address that make one client, as in a policy by default.
const IPV6_PREFIX: u8 = 64;

/// What a log holds.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) endpoints: Endpoints,
    pub(super) usage: Vec<EndpointUse>,
    pub(super) requests: u64,
    pub(super) with_user: u64,
    pub(super) from_private: u64,
    /// Requests by hour of the day, in UTC.
    pub(super) by_hour: [u64; 24],
    /// Whether there are requests of each weekday, from Sunday on.
    pub(super) weekdays: [bool; 7],
}

/// What one endpoint was asked for.
#[derive(Debug, Default)]
pub(super) struct EndpointUse {
    pub(super) requests: u64,
    /// Responses whose time is known, and that time in all.
    pub(super) timed: u64,
    pub(super) duration_us: u64,
    /// Responses with the status 401 or 403.
    pub(super) denied: u64,
    /// The units that a request costs.
    pub(super) units: u64,
    pub(super) rates: PeakRates,
}

/// By what clients are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientKey {
    User,
    Ip,
}

impl ClientKey {
    /// The attribute.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Ip => "ip",
        }
    }

    /// Several clients, in words.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::User => "users",
            Self::Ip => "addresses",
        }
    }

    /// The client of a request, as a number.
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
    /// The first reading: endpoints, response times, hours.
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

    /// The key that tells most clients apart, and what each endpoint costs.
    pub(super) fn between(&mut self) -> ClientKey {
        unit_costs(&mut self.usage);
        if 2 * self.with_user > self.requests { ClientKey::User } else { ClientKey::Ip }
    }

    /// The second reading: who asks how often. Returns the rates of all endpoints together.
    pub(super) fn second(&mut self, record: Record<'_>, key: ClientKey, all: &mut PeakRates) {
        let Some(client) = key.of(record) else { return };
        let (method, path) = (record.value(Field::Method), record.value(Field::Path));
        let Some(number) = self.endpoints.known(method, path) else { return };
        let usage = &mut self.usage[number];
        all.count(client, record.time_us(), usage.units);
        // Logins are guarded by address: a client chooses the name it sends.
        let own = if usage.is_login(self.endpoints.get(number).0) { ClientKey::Ip } else { key };
        if let Some(client) = own.of(record) {
            usage.rates.count(client, record.time_us(), 1);
        }
    }
}

impl EndpointUse {
    /// The mean time of a response.
    pub(super) fn mean_us(&self) -> Option<u64> {
        self.duration_us.checked_div(self.timed)
    }

    /// Whether passwords are tried here: many requests that change something are denied.
    pub(super) fn is_login(&self, method: &str) -> bool {
        method == "POST" && self.requests >= 20 && 10 * self.denied >= self.requests
    }
}

/// Whether an address is that of a machine behind the same router.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_private() || address.is_loopback(),
        IpAddr::V6(address) => address.is_unique_local() || address.is_loopback(),
    }
}
