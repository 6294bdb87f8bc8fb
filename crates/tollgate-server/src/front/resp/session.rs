//! What a connection has said about itself.

use super::decode::Caps;
use super::encode::RespVersion;
use std::net::SocketAddr;

/// Wrong passwords on one connection, after which it is closed.
const WRONG_MAX: u8 = 8;

/// One connection's side of the conversation.
#[derive(Debug)]
pub(super) struct Session {
    /// Counts the connections of this process.
    pub(super) id: i64,
    pub(super) peer: SocketAddr,
    pub(super) version: RespVersion,
    /// What it calls itself; may be empty.
    pub(super) name: Box<[u8]>,
    /// Whether it has said the password, or did not have to when it came.
    is_authenticated: bool,
    wrong_passwords: u8,
    /// Whether the connection is to end after what has been answered.
    pub(super) is_closing: bool,
}

impl Session {
    pub(super) fn new(id: i64, peer: SocketAddr, is_authenticated: bool) -> Self {
        let (version, name) = (RespVersion::default(), Box::default());
        Self { id, peer, version, name, is_authenticated, wrong_passwords: 0, is_closing: false }
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.is_authenticated
    }

    pub(super) fn caps(&self) -> Caps {
        if self.is_authenticated { Caps::AUTHENTICATED } else { Caps::UNAUTHENTICATED }
    }

    /// The password was right.
    pub(super) fn set_authenticated(&mut self) {
        self.is_authenticated = true;
        self.wrong_passwords = 0;
    }

    /// The password was wrong. Whoever keeps guessing has to connect again.
    pub(super) fn wrong_password(&mut self) {
        self.wrong_passwords = self.wrong_passwords.saturating_add(1);
        self.is_closing |= self.wrong_passwords >= WRONG_MAX;
    }

    /// As it began.
    pub(super) fn reset(&mut self, is_authenticated: bool) {
        self.version = RespVersion::default();
        self.name = Box::default();
        self.is_authenticated = is_authenticated;
    }
}
