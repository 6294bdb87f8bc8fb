//! Connection commands: `HELLO`, `AUTH`, `CLIENT`, `PING` and others.

use super::{CommandKind, docs};
use crate::front::resp::batch::Batch;
use crate::front::resp::decode::integer;
use crate::front::resp::encode::{self, RespVersion};
use crate::front::resp::session::RespState;
use crate::front::resp::session::Session;
use std::borrow::Cow;
use std::ops::Range;
use tollgate_observe::metrics::Outcome;

/// The version of Redis shown to clients, which choose their commands by it.
const REDIS_VERSION: &str = "7.4.0";
/// Limit of a connection name.
const NAME_BYTES_MAX: usize = 256;

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the default user. \
     Are you sure your configuration is correct?";
const HELLO_FIRST: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
     HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
     protocol version at the same time";

impl RespState {
    /// Replies to a command that needs no decision.
    pub(crate) fn connection_command(
        &self,
        batch: &mut Batch,
        bytes: &[u8],
        name: CommandKind,
        arguments: &[Range<usize>],
        session: &mut Session,
    ) {
        let words: Vec<&[u8]> = arguments[1..].iter().map(|at| &bytes[at.clone()]).collect();
        let version = session.version;
        match (name, &words[..]) {
            (CommandKind::Ping, []) => batch.reply(Outcome::Ok, |out| encode::simple(out, "PONG")),
            (CommandKind::Ping | CommandKind::Echo, [text]) => batch.reply_bulk(text),
            (CommandKind::Hello, words) => self.hello(batch, words, session),
            (CommandKind::Auth, [password]) => self.auth(batch, b"default", password, session),
            (CommandKind::Auth, [user, password]) => self.auth(batch, user, password, session),
            (CommandKind::Client, words) => client(batch, words, session),
            (CommandKind::Command, words) => {
                batch.reply(Outcome::Ok, |out| docs::command(out, words, version));
            }
            (CommandKind::Select, [database]) => match integer(database) {
                Some(0) => batch.reply_ok(),
                Some(_) => batch.reply_error("ERR DB index is out of range"),
                None => batch.reply_error("ERR value is not an integer or out of range"),
            },
            (CommandKind::Quit, _) => {
                batch.reply_ok();
                session.is_closing = true;
            }
            (CommandKind::Reset, _) => {
                session.reset(!self.node.resp_auth.requires_password());
                batch.reply(Outcome::Ok, |out| encode::simple(out, "RESET"));
            }
            (CommandKind::Info, _) => batch.reply_bulk(self.info().as_bytes()),
            // The minimum was checked before, so there are too many arguments.
            _ => batch.reply_error("ERR wrong number of arguments"),
        }
    }

    /// `HELLO [version [AUTH user password] [SETNAME name]]`: applies all of it, or nothing.
    fn hello(&self, batch: &mut Batch, words: &[&[u8]], session: &mut Session) {
        let (version, mut options) = match words {
            [] => (session.version, words),
            [version, options @ ..] => match integer(version) {
                Some(2) => (RespVersion::Resp2, options),
                Some(3) => (RespVersion::Resp3, options),
                Some(_) => return batch.reply_error("NOPROTO unsupported protocol version"),
                None => {
                    return batch
                        .reply_error("ERR Protocol version is not an integer or out of range");
                }
            },
        };
        let (mut credentials, mut name) = (None, None);
        loop {
            options = match options {
                [] => break,
                [word, user, password, rest @ ..] if word.eq_ignore_ascii_case(b"AUTH") => {
                    credentials = Some((*user, *password));
                    rest
                }
                [word, given, rest @ ..]
                    if word.eq_ignore_ascii_case(b"SETNAME") && is_name(given) =>
                {
                    name = Some(*given);
                    rest
                }
                _ => return batch.reply_error("ERR Syntax error in HELLO"),
            };
        }
        if let Some((user, password)) = credentials
            && let Err(why) = self.authenticate(user, password, session)
        {
            return batch.reply_error(&why);
        }
        if !session.is_authenticated() {
            return batch.reply_error(HELLO_FIRST);
        }
        session.version = version;
        if let Some(name) = name {
            session.name = name.into();
        }
        batch.reply(Outcome::Ok, |out| {
            encode::map(out, version, 7);
            let mut bulks = |words: &[&str], number: Option<i64>| {
                words.iter().for_each(|word| encode::bulk(out, word.as_bytes()));
                number.inspect(|number| encode::integer(out, *number));
            };
            let proto = Some(version.number());
            bulks(&["server", "redis", "version", REDIS_VERSION, "proto"], proto);
            bulks(&["id"], Some(session.id));
            bulks(&["mode", "standalone", "role", "master", "modules"], None);
            encode::array(out, 0);
        });
    }

    fn auth(&self, batch: &mut Batch, user: &[u8], password: &[u8], session: &mut Session) {
        match self.authenticate(user, password, session) {
            Ok(()) => batch.reply_ok(),
            Err(why) => batch.reply_error(&why),
        }
    }

    /// Authenticates the connection. There is only one user.
    fn authenticate(
        &self,
        user: &[u8],
        password: &[u8],
        session: &mut Session,
    ) -> Result<(), Cow<'static, str>> {
        let auth = &self.node.resp_auth;
        if !auth.requires_password() {
            return Err(NO_PASSWORD.into());
        }
        let peer = session.peer.ip();
        // Even the right password has to wait. Otherwise guesses would cost nothing.
        if let Some(wait_us) = self.guard.peek_wait_us(peer) {
            session.wrong_password();
            let seconds = wait_us.div_ceil(1_000_000);
            // Client libraries treat `WRONGPASS` as a failed login, and `ERR` as a failed command.
            let why =
                format!("WRONGPASS too many wrong passwords from your address; wait {seconds} s");
            return Err(why.into());
        }
        if !auth.is_password(password) || user != b"default" {
            self.guard.count_try(peer);
            session.wrong_password();
            return Err(WRONG_PASSWORD.into());
        }
        self.guard.clear(peer);
        session.set_authenticated();
        Ok(())
    }

    /// The text of `INFO`, with the fields that clients read.
    fn info(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let process = std::process::id();
        let loading = u8::from(!self.node.health.is_ready());
        format!(
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\nserver_name:tollgate\r\n\
             tollgate_version:{version}\r\nprocess_id:{process}\r\n\r\n# Persistence\r\nloading:{loading}\r\n\r\n\
             # Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n"
        )
    }
}

/// Whether a name is valid for a connection: empty, or visible ASCII without spaces, as in Redis.
fn is_name(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES_MAX && name.iter().all(u8::is_ascii_graphic)
}

fn client(batch: &mut Batch, words: &[&[u8]], session: &mut Session) {
    let [word, rest @ ..] = words else { return };
    let word = word.to_ascii_uppercase();
    match (&word[..], rest) {
        (b"SETNAME", [name]) if is_name(name) => {
            session.name = (*name).into();
            batch.reply_ok();
        }
        (b"SETNAME", [_]) => batch.reply_error(
            "ERR Client names cannot contain spaces, newlines or special characters, nor be long.",
        ),
        (b"GETNAME", []) => {
            if session.name.is_empty() {
                batch.reply(Outcome::Ok, |out| encode::null(out, session.version));
            } else {
                batch.reply_bulk(&session.name);
            }
        }
        (b"ID", []) => batch.reply(Outcome::Ok, |out| encode::integer(out, session.id)),
        (b"INFO" | b"LIST", _) => {
            let Session { id, peer, name, version, .. } = &*session;
            let name = String::from_utf8_lossy(name);
            let line = format!("id={id} addr={peer} name={name} db=0 resp={}\n", version.number());
            batch.reply_bulk(line.as_bytes());
        }
        // The client library, and cache hints, which have no effect here.
        (b"SETINFO", [_, _]) | (b"NO-EVICT" | b"NO-TOUCH", [_]) => batch.reply_ok(),
        _ => {
            let word = String::from_utf8_lossy(&word[..word.len().min(64)]);
            batch.reply_error(format_args!("ERR unknown subcommand or wrong number of arguments for '{word}'. Try SETNAME, GETNAME, ID, INFO."));
        }
    }
}
