//! The commands there are.

mod connection;
mod docs;
pub(crate) mod limit;
mod reservation;
pub(crate) mod throttle;

use throttle::Dialect;

/// What a command is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
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
pub(crate) struct CommandSpec {
    pub(crate) name: &'static str,
    pub(crate) kind: CommandKind,
    /// How many arguments it has, its name included; negative for at least so many.
    pub(crate) arity: i64,
    pub(crate) flags: &'static [&'static str],
    /// Where its key stands; zero where it has none.
    pub(crate) key: i64,
    pub(crate) summary: &'static str,
}

const FAST: &[&str] = &["fast"];
const WRITE: &[&str] = &["write", "fast"];
const READ: &[&str] = &["readonly", "fast"];
const CONNECTION: &[&str] = &["fast", "loading", "stale"];
const NO_AUTH: &[&str] = &["fast", "loading", "stale", "no_auth"];

const fn command(
    name: &'static str,
    kind: CommandKind,
    arity: i64,
    flags: &'static [&'static str],
    key: i64,
    summary: &'static str,
) -> CommandSpec {
    CommandSpec { name, kind, arity, flags, key, summary }
}

/// In the order in which `COMMAND` lists them.
#[rustfmt::skip]
pub(crate) const COMMANDS: [CommandSpec; 17] = [
    command("cl.throttle", CommandKind::Throttle(Dialect::Cell), -5, WRITE, 1, "Decides by numbers that come with the call, as redis-cell does."),
    command("gcra", CommandKind::Throttle(Dialect::Gcra), -5, WRITE, 1, "The same with decimals in the period. Experimental."),
    command("tg.check", CommandKind::Check, -3, WRITE, 0, "Decides by a limit of the policy and takes what it admits."),
    command("tg.peek", CommandKind::Peek, -3, READ, 0, "Answers as TG.CHECK would and takes nothing."),
    command("tg.reserve", CommandKind::Reserve, -3, WRITE, 0, "Decides as TG.CHECK does, and keeps what it took open."),
    command("tg.settle", CommandKind::Settle, 3, WRITE, 0, "Ends a reservation with its true cost."),
    command("tg.cancel", CommandKind::Cancel, 2, WRITE, 0, "Ends a reservation and gives back what it took."),
    command("ping", CommandKind::Ping, -1, CONNECTION, 0, "Answers PONG, or what it was sent."),
    command("echo", CommandKind::Echo, 2, FAST, 0, "Answers what it was sent."),
    command("hello", CommandKind::Hello, -1, NO_AUTH, 0, "Chooses the version of the protocol."),
    command("auth", CommandKind::Auth, -2, NO_AUTH, 0, "Says the password."),
    command("client", CommandKind::Client, -2, CONNECTION, 0, "Names the connection, or tells about it."),
    command("command", CommandKind::Command, -1, CONNECTION, 0, "Describes the commands."),
    command("select", CommandKind::Select, 2, CONNECTION, 0, "Chooses the database, of which there is one: 0."),
    command("quit", CommandKind::Quit, -1, NO_AUTH, 0, "Ends the connection."),
    command("reset", CommandKind::Reset, 1, NO_AUTH, 0, "Puts the connection back to where it began."),
    command("info", CommandKind::Info, -1, CONNECTION, 0, "Tells about the server."),
];

/// The command of this name, in whatever case.
#[inline]
pub(crate) fn find(word: &[u8]) -> Option<&'static CommandSpec> {
    COMMANDS.iter().find(|known| known.name.as_bytes().eq_ignore_ascii_case(word))
}

impl CommandSpec {
    /// Whether it can have so many arguments, its name included. What throttles says itself how it
    /// is used.
    pub(crate) fn accepts(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        match self.kind {
            CommandKind::Throttle(_) => true,
            _ if self.arity < 0 => count >= -self.arity,
            _ => count == self.arity,
        }
    }
}
