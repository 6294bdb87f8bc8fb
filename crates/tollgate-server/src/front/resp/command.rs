//! The commands there are.

use super::throttle::Dialect;

/// What a command is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Throttle(Dialect),
    Check,
    Peek,
    Reserve,
    Settle,
    Cancel,
    Ping,
    Echo,
    Hello,
    Auth,
    Client,
    Command,
    Select,
    Quit,
    Reset,
    Info,
}

/// A command, as `COMMAND` describes it.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) word: &'static str,
    pub(super) name: Name,
    /// How many arguments it has, its name included; negative for at least so many.
    pub(super) arity: i64,
    pub(super) flags: &'static [&'static str],
    /// Where its key stands; zero where it has none.
    pub(super) key: i64,
    pub(super) summary: &'static str,
}

const FAST: &[&str] = &["fast"];
const WRITE: &[&str] = &["write", "fast"];
const READ: &[&str] = &["readonly", "fast"];
const SPEAK: &[&str] = &["fast", "loading", "stale"];
const ENTER: &[&str] = &["fast", "loading", "stale", "no_auth"];

const fn described(
    word: &'static str,
    name: Name,
    arity: i64,
    flags: &'static [&'static str],
    key: i64,
    summary: &'static str,
) -> Described {
    Described { word, name, arity, flags, key, summary }
}

/// In the order in which `COMMAND` lists them.
#[rustfmt::skip]
pub(super) const ALL: [Described; 17] = [
    described("cl.throttle", Name::Throttle(Dialect::Cell), -5, WRITE, 1, "Decides by numbers that come with the call, as redis-cell does."),
    described("gcra", Name::Throttle(Dialect::Gcra), -5, WRITE, 1, "The same with decimals in the period. Experimental."),
    described("tg.check", Name::Check, -3, WRITE, 0, "Decides by a limit of the policy and takes what it admits."),
    described("tg.peek", Name::Peek, -3, READ, 0, "Answers as TG.CHECK would and takes nothing."),
    described("tg.reserve", Name::Reserve, -3, WRITE, 0, "Decides as TG.CHECK does, and keeps what it took open."),
    described("tg.settle", Name::Settle, 3, WRITE, 0, "Ends a reservation with its true cost."),
    described("tg.cancel", Name::Cancel, 2, WRITE, 0, "Ends a reservation and gives back what it took."),
    described("ping", Name::Ping, -1, SPEAK, 0, "Answers PONG, or what it was sent."),
    described("echo", Name::Echo, 2, FAST, 0, "Answers what it was sent."),
    described("hello", Name::Hello, -1, ENTER, 0, "Chooses the version of the protocol."),
    described("auth", Name::Auth, -2, ENTER, 0, "Says the password."),
    described("client", Name::Client, -2, SPEAK, 0, "Names the connection, or tells about it."),
    described("command", Name::Command, -1, SPEAK, 0, "Describes the commands."),
    described("select", Name::Select, 2, SPEAK, 0, "Chooses the database, of which there is one: 0."),
    described("quit", Name::Quit, -1, ENTER, 0, "Ends the connection."),
    described("reset", Name::Reset, 1, ENTER, 0, "Puts the connection back to where it began."),
    described("info", Name::Info, -1, SPEAK, 0, "Tells about the server."),
];

/// The command of this name, in whatever case.
#[inline]
pub(super) fn find(word: &[u8]) -> Option<&'static Described> {
    ALL.iter().find(|known| known.word.as_bytes().eq_ignore_ascii_case(word))
}

impl Described {
    /// Whether it can have so many arguments, its name included. What throttles says itself how it is used.
    pub(super) fn takes(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        match self.name {
            Name::Throttle(_) => true,
            _ if self.arity < 0 => count >= -self.arity,
            _ => count == self.arity,
        }
    }
}
