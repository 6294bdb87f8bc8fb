//! When a connection leaves the protocol between two requests.

use crate::net::life::Life;
use std::rc::Rc;

/// Ends what the protocol reads where it has nothing left to say and the next request is one for somebody else, who then has the stream and all that came by it.
///
/// The protocol takes the end for the client's. That loses nothing only when each request that it was given has been answered, and when its own buffer is
/// empty since the last of these answers: it flushes the stream only when it is.
#[derive(Debug)]
pub(in crate::net) struct Back {
    life: Rc<Life>,
    /// How many answers there had been when the protocol began.
    before: u32,
    /// So many requests are to be answered first.
    after: u32,
    is_wanted: fn(&[u8], &Life) -> bool,
    is_idle: bool,
}

impl Back {
    /// After some requests, one at least: somebody has sent the first here.
    pub(in crate::net) fn new(
        life: Rc<Life>,
        after: u32,
        is_wanted: fn(&[u8], &Life) -> bool,
    ) -> Self {
        let (before, after) = (life.answered(), after.max(1));
        Self { life, before, after, is_wanted, is_idle: false }
    }

    /// The protocol got more to read.
    pub(super) fn given(&mut self) {
        self.is_idle = false;
    }

    /// All that the protocol had to say has been written. `heads`: so many requests it was given.
    pub(super) fn flushed(&mut self, heads: u32) {
        let answered = self.life.answered().wrapping_sub(self.before);
        self.is_idle = answered == heads && heads >= self.after;
    }

    /// Whether the protocol ends before the request that begins with these bytes.
    pub(super) fn is_before(&self, bytes: &[u8]) -> bool {
        self.is_idle && (self.is_wanted)(bytes, &self.life)
    }
}
