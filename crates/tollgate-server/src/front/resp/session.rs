//! What a connection has said about itself.

use super::decode::Caps;
use super::encode::Version;
use std::net::SocketAddr;

/// Wrong passwords on one connection, after which it is closed.
const WRONG_MAX: u8 = 8;

/// One connection's side of the conversation.
#[derive(Debug)]
pub(super) struct Session {
    /// Counts the connections of this process.
    pub(super) id: i64,
    pub(super) peer: SocketAddr,
    pub(super) version: Version,
    /// What it calls itself; may be empty.
    pub(super) name: Box<[u8]>,
    /// Whether it has said the password, or did not have to when it came.
    is_known: bool,
    wrong: u8,
    /// Whether the connection is to end after what has been answered.
    pub(super) is_over: bool,
}

impl Session {
    pub(super) fn new(id: i64, peer: SocketAddr, is_known: bool) -> Self {
        let (version, name) = (Version::default(), Box::default());
        Self { id, peer, version, name, is_known, wrong: 0, is_over: false }
    }

    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    pub(super) fn caps(&self) -> Caps {
        if self.is_known { Caps::USUAL } else { Caps::STRANGER }
    }

    /// The password was right.
    pub(super) fn enter(&mut self) {
        self.is_known = true;
        self.wrong = 0;
    }

    /// The password was wrong. Whoever keeps guessing has to connect again.
    pub(super) fn guessed(&mut self) {
        self.wrong = self.wrong.saturating_add(1);
        self.is_over |= self.wrong >= WRONG_MAX;
    }

    /// As it began.
    pub(super) fn reset(&mut self, is_known: bool) {
        self.version = Version::default();
        self.name = Box::default();
        self.is_known = is_known;
    }
}
