//! What clients say to a server before and between what they want of it: `HELLO`, `AUTH`, `CLIENT`,
//! `PING` and the like.

use super::{CommandKind, docs};
use crate::front::resp::batch::Batch;
use crate::front::resp::decode::integer;
use crate::front::resp::encode::{self, RespVersion};
use crate::front::resp::session::RespState;
use crate::front::resp::session::Session;
use crate::observe::metrics::Outcome;
use std::borrow::Cow;
use std::ops::Range;

/// The Redis whose protocol this is: clients decide by it what they may send.
const REDIS_VERSION: &str = "7.4.0";
/// What a connection may call itself, in bytes.
const NAME_BYTES_MAX: usize = 256;

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the default user. \
     Are you sure your configuration is correct?";
const HELLO_FIRST: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
     HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
     protocol version at the same time";

/// Arguments as they were sent.
type CommandArguments<'a> = Vec<&'a [u8]>;

impl RespState {
    /// Answers a command that nothing has to be decided for.
    pub(crate) fn connection_command(
        &self,
        batch: &mut Batch,
        bytes: &[u8],
        name: CommandKind,
        arguments: &[Range<usize>],
        session: &mut Session,
    ) {
        let words: CommandArguments<'_> =
            arguments[1..].iter().map(|at| &bytes[at.clone()]).collect();
        let version = session.version;
        match (name, &words[..]) {
            (CommandKind::Ping, []) => batch.reply(Outcome::Ok, |out| encode::simple(out, "PONG")),
            (CommandKind::Ping | CommandKind::Echo, [text]) => {
                batch.reply(Outcome::Ok, |out| encode::bulk(out, text));
            }
            (CommandKind::Hello, words) => self.hello(batch, words, session),
            (CommandKind::Auth, [password]) => self.auth(batch, b"default", password, session),
            (CommandKind::Auth, [user, password]) => self.auth(batch, user, password, session),
            (CommandKind::Client, words) => client(batch, words, session),
            (CommandKind::Command, words) => {
                batch.reply(Outcome::Ok, |out| docs::command(out, words, version));
            }
            (CommandKind::Select, [database]) => match integer(database) {
                Some(0) => reply_ok(batch),
                Some(_) => reply_error(batch, "ERR DB index is out of range"),
                None => reply_error(batch, "ERR value is not an integer or out of range"),
            },
            (CommandKind::Quit, _) => {
                reply_ok(batch);
                session.is_closing = true;
            }
            (CommandKind::Reset, _) => {
                session.reset(!self.node.resp_auth.requires_password());
                batch.reply(Outcome::Ok, |out| encode::simple(out, "RESET"));
            }
            (CommandKind::Info, _) => {
                let info = self.info();
                batch.reply(Outcome::Ok, |out| encode::bulk(out, info.as_bytes()));
            }
            // As many as it takes at least are there, and these are too many.
            _ => reply_error(batch, "ERR wrong number of arguments"),
        }
    }

    /// `HELLO [version [AUTH user password] [SETNAME name]]`: all of it, or nothing.
    fn hello(&self, batch: &mut Batch, words: &[&[u8]], session: &mut Session) {
        let (version, mut options) = match words {
            [] => (session.version, words),
            [version, options @ ..] => match integer(version) {
                Some(2) => (RespVersion::Resp2, options),
                Some(3) => (RespVersion::Resp3, options),
                Some(_) => return reply_error(batch, "NOPROTO unsupported protocol version"),
                None => {
                    return reply_error(
                        batch,
                        "ERR Protocol version is not an integer or out of range",
                    );
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
                _ => return reply_error(batch, "ERR Syntax error in HELLO"),
            };
        }
        if let Some((user, password)) = credentials
            && let Err(why) = self.authenticate(user, password, session)
        {
            return reply_error(batch, &why);
        }
        if !session.is_authenticated() {
            return reply_error(batch, HELLO_FIRST);
        }
        session.version = version;
        if let Some(name) = name {
            session.name = name.into();
        }
        batch.reply(Outcome::Ok, |out| {
            encode::map(out, version, 7);
            for (word, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
                encode::bulk(out, word.as_bytes());
                encode::bulk(out, value.as_bytes());
            }
            for (word, value) in [("proto", version.number()), ("id", session.id)] {
                encode::bulk(out, word.as_bytes());
                encode::integer(out, value);
            }
            for (word, value) in [("mode", "standalone"), ("role", "master")] {
                encode::bulk(out, word.as_bytes());
                encode::bulk(out, value.as_bytes());
            }
            encode::bulk(out, b"modules");
            encode::array(out, 0);
        });
    }

    fn auth(&self, batch: &mut Batch, user: &[u8], password: &[u8], session: &mut Session) {
        match self.authenticate(user, password, session) {
            Ok(()) => reply_ok(batch),
            Err(why) => reply_error(batch, &why),
        }
    }

    /// Lets the connection in, if that is the password. There is one user.
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
        let (now_us, peer) = (self.node.clock.now_us(), session.peer.ip());
        // The answer does not say whether the password was right, or waiting would cost nothing.
        if let Some(wait_us) = self.guard.peek_wait_us(now_us, peer) {
            session.wrong_password();
            let seconds = wait_us.div_ceil(1_000_000);
            // Client libraries take `WRONGPASS` for a failed login, and `ERR` for a failed command.
            let why = format!(
                "WRONGPASS too many wrong passwords came from your address; wait {seconds} s"
            );
            return Err(why.into());
        }
        if !auth.is_password(password) || user != b"default" {
            self.guard.count_try(now_us, peer);
            session.wrong_password();
            return Err(WRONG_PASSWORD.into());
        }
        self.guard.clear(peer);
        session.set_authenticated();
        Ok(())
    }

    /// What clients look for, and what people do.
    fn info(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let process = std::process::id();
        let is_ready = u8::from(!self.node.health.is_ready());
        format!(
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\nserver_name:tollgate\r\n\
             tollgate_version:{version}\r\nprocess_id:{process}\r\n\r\n# Persistence\r\nloading:{is_ready}\r\n\r\n\
             # Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n"
        )
    }
}

/// Whether a connection may be called that: visible ASCII without spaces, as in Redis, or nothing.
fn is_name(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES_MAX && name.iter().all(u8::is_ascii_graphic)
}

fn client(batch: &mut Batch, words: &[&[u8]], session: &mut Session) {
    let [word, rest @ ..] = words else { return };
    let word = word.to_ascii_uppercase();
    match (&word[..], rest) {
        (b"SETNAME", [name]) if is_name(name) => {
            session.name = (*name).into();
            reply_ok(batch);
        }
        (b"SETNAME", [_]) => reply_error(
            batch,
            "ERR Client names cannot contain spaces, newlines or special characters, nor be long.",
        ),
        (b"GETNAME", []) => {
            let (name, version) = (&session.name, session.version);
            batch.reply(Outcome::Ok, |out| match name.is_empty() {
                true => encode::null(out, version),
                false => encode::bulk(out, name),
            });
        }
        (b"ID", []) => batch.reply(Outcome::Ok, |out| encode::integer(out, session.id)),
        (b"INFO" | b"LIST", _) => {
            let Session { id, peer, name, version, .. } = &*session;
            let name = String::from_utf8_lossy(name);
            let line = format!("id={id} addr={peer} name={name} db=0 resp={}\n", version.number());
            batch.reply(Outcome::Ok, |out| encode::bulk(out, line.as_bytes()));
        }
        // What a client is written in, and what it wants of a cache that is not here.
        (b"SETINFO", [_, _]) | (b"NO-EVICT" | b"NO-TOUCH", [_]) => reply_ok(batch),
        _ => {
            let word = String::from_utf8_lossy(&word[..word.len().min(64)]).into_owned();
            batch.reply(Outcome::Invalid, |out| {
                let text = format_args!("ERR unknown subcommand or wrong number of arguments for '{word}'. Try SETNAME, GETNAME, ID, INFO.");
                encode::error(out, text);
            });
        }
    }
}

fn reply_ok(batch: &mut Batch) {
    batch.reply(Outcome::Ok, |out| encode::simple(out, "OK"));
}

#[cold]
fn reply_error(batch: &mut Batch, text: &str) {
    batch.reply(Outcome::Invalid, |out| encode::error(out, text));
}
