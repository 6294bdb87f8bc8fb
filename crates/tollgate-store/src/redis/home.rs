//! Where a server is at the moment.

use super::dial::Dialer;
use super::endpoint::ServerAddress;
use super::failure::Failure;
use super::link::Link;
use super::sentinel::Sentinels;

/// Where a server is: always at the same address, or where the sentinels say.
#[derive(Debug)]
pub(super) enum NodeLocation {
    Fixed(ServerAddress),
    Sentinels(Sentinels),
}

impl NodeLocation {
    /// Connects to the server; `cut_off` is whether there is no other connection to it.
    pub(super) async fn dial(&self, dialer: &Dialer, cut_off: bool) -> Result<Link, Failure> {
        match self {
            Self::Fixed(address) => dialer.dial(address).await,
            Self::Sentinels(sentinels) => sentinels.dial(dialer, cut_off).await,
        }
    }

    /// What it is called in logs.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Fixed(address) => address.to_string(),
            Self::Sentinels(sentinels) => sentinels.master().to_owned(),
        }
    }

    pub(super) const fn sentinels(&self) -> Option<&Sentinels> {
        match self {
            Self::Fixed(_) => None,
            Self::Sentinels(sentinels) => Some(sentinels),
        }
    }
}
