//! Commands: their table, and a file for each group.

mod connection;
mod docs;
pub(crate) mod limit;
mod reservation;
pub(crate) mod throttle;

use throttle::Dialect;
use tollgate_net::lowercase_word;

/// The operation of a command.
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

impl CommandKind {
    pub(crate) const fn is_reservation(self) -> bool {
        matches!(self, Self::Reserve | Self::Settle | Self::Cancel)
    }
}

/// A command, as described by `COMMAND`.
#[derive(Debug)]
pub(crate) struct CommandSpec {
    pub(crate) name: &'static str,
    padded_name: [u8; NAME_BYTES],
    pub(crate) kind: CommandKind,
    /// The number of arguments including the name; negative for a minimum.
    pub(crate) arity: i64,
    pub(crate) flags: &'static [&'static str],
    /// The index of the command's key, or 0.
    pub(crate) key: i64,
    pub(crate) summary: &'static str,
}

/// Room for each name. Names of this size are compared as one number.
const NAME_BYTES: usize = 16;

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
    let mut padded_name = [0; NAME_BYTES];
    padded_name.split_at_mut(name.len()).0.copy_from_slice(name.as_bytes());
    CommandSpec { name, padded_name, kind, arity, flags, key, summary }
}

/// The commands, in the order of `COMMAND`.
#[rustfmt::skip]
pub(crate) const COMMANDS: [CommandSpec; 17] = [
    command("cl.throttle", CommandKind::Throttle(Dialect::Cell), -5, WRITE, 1, "Checks a limit that comes with the call, as redis-cell does."),
    command("gcra", CommandKind::Throttle(Dialect::Gcra), -5, WRITE, 1, "CL.THROTTLE with decimals in the period. Experimental."),
    command("tg.check", CommandKind::Check, -3, WRITE, 0, "Checks a limit of the policy and consumes."),
    command("tg.peek", CommandKind::Peek, -3, READ, 0, "Checks a limit of the policy and consumes nothing."),
    command("tg.reserve", CommandKind::Reserve, -3, WRITE, 0, "Checks as TG.CHECK does, and opens a reservation."),
    command("tg.settle", CommandKind::Settle, -3, WRITE, 0, "Ends a reservation with its real cost."),
    command("tg.cancel", CommandKind::Cancel, 2, WRITE, 0, "Ends a reservation and refunds it."),
    command("ping", CommandKind::Ping, -1, CONNECTION, 0, "Replies PONG, or the argument."),
    command("echo", CommandKind::Echo, 2, FAST, 0, "Replies the argument."),
    command("hello", CommandKind::Hello, -1, NO_AUTH, 0, "Selects the version of the protocol."),
    command("auth", CommandKind::Auth, -2, NO_AUTH, 0, "Authenticates the connection."),
    command("client", CommandKind::Client, -2, CONNECTION, 0, "Names or describes the connection."),
    command("command", CommandKind::Command, -1, CONNECTION, 0, "Describes the commands."),
    command("select", CommandKind::Select, 2, CONNECTION, 0, "Selects the database; 0 is the only one."),
    command("quit", CommandKind::Quit, -1, NO_AUTH, 0, "Closes the connection."),
    command("reset", CommandKind::Reset, 1, NO_AUTH, 0, "Resets the connection."),
    command("info", CommandKind::Info, -1, CONNECTION, 0, "Describes the server."),
];

/// The command with this name, case-insensitive.
#[inline(always)]
pub(crate) fn find(word: &[u8]) -> Option<&'static CommandSpec> {
    let mut padded = [0; NAME_BYTES];
    padded.get_mut(..word.len())?.copy_from_slice(word);
    for part in padded.as_chunks_mut().0 {
        *part = lowercase_word(*part);
    }
    let is_named =
        |known: &&CommandSpec| known.padded_name == padded && known.name.len() == word.len();
    COMMANDS.iter().find(is_named)
}

impl CommandSpec {
    /// Whether the command accepts this number of arguments, including the name. `CL.THROTTLE` has
    /// its own usage error.
    pub(crate) fn accepts(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        match self.kind {
            CommandKind::Throttle(_) => true,
            _ if self.arity < 0 => count >= -self.arity,
            _ => count == self.arity,
        }
    }
}
