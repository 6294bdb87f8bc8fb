//! What a failed call means: for whoever asked, for the connection, and for where the call belongs.

use crate::{StoreError, StoreErrorKind};
use redis::RedisError;

/// A failed call.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) error: StoreError,
    pub(crate) action: FailureAction,
}

/// What is to be done about it. Everything but `KeepConnection`, `CallRefused` and `Reconnect` is
/// said by a server that did nothing, so the call may be made again; nothing else ever is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FailureAction {
    /// Nothing.
    KeepConnection,
    /// Nothing; and it says nothing of other calls, which the server may well answer.
    CallRefused,
    /// The connection is of no use any more.
    Reconnect,
    /// The script has to be sent in full.
    SendScript,
    /// The server no longer takes writes; another one does.
    NotPrimary,
    /// The slot is served there.
    Moved(String, u16),
    /// These keys are served there, this once.
    Ask(String, u16),
    /// The slot is on its way; each of its keys is here or there.
    TryAgain,
}

impl Failure {
    pub(crate) fn timeout() -> Self {
        let error = StoreError::new(StoreErrorKind::Timeout, "");
        Self { error, action: FailureAction::Reconnect }
    }

    /// Whether the server says that others serve these keys.
    pub(crate) const fn is_redirection(&self) -> bool {
        matches!(
            self.action,
            FailureAction::Moved(..) | FailureAction::Ask(..) | FailureAction::TryAgain
        )
    }

    pub(crate) fn closed_by_server() -> Self {
        Self::new(StoreErrorKind::Unreachable, FailureAction::Reconnect, "it hung up")
    }

    /// It was given up for another server.
    pub(crate) fn primary_changed() -> Self {
        Self::new(
            StoreErrorKind::Unreachable,
            FailureAction::Reconnect,
            "another one is the primary",
        )
    }

    fn new(kind: StoreErrorKind, then: FailureAction, detail: &str) -> Self {
        Self { error: StoreError::new(kind, detail), action: then }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        use StoreErrorKind::{Protocol, Rejected, Unreachable};
        if error.is_timeout() {
            return Self::timeout();
        }
        if let Some((code, text)) = server_error(&error) {
            return by_code(&code, &text);
        }
        match error.kind() {
            redis::ErrorKind::InvalidClientConfig => {
                Self::new(Rejected, FailureAction::Reconnect, "")
            }
            redis::ErrorKind::Parse | redis::ErrorKind::UnexpectedReturnType => {
                Self::new(Protocol, FailureAction::Reconnect, NOT_REDIS)
            }
            // What the system says about a connection names no key and no password.
            redis::ErrorKind::Io => {
                Self::new(Unreachable, FailureAction::Reconnect, &error.to_string())
            }
            _ => Self::new(Unreachable, FailureAction::Reconnect, ""),
        }
    }
}

/// The code and the text that a server answered with. Redis before 7 reports what failed inside a
/// script with a code of its own in front.
fn server_error(error: &RedisError) -> Option<(String, String)> {
    let code = error.code()?;
    let text = error.detail().unwrap_or_default();
    if code == "ERR"
        && text.contains("running script")
        && let Some((_, inner)) = text.split_once(": -")
    {
        let (code, text) = inner.split_once(' ').unwrap_or((inner, ""));
        return Some((code.into(), text.into()));
    }
    Some((code.into(), text.into()))
}

/// The server's own words may repeat arguments, so only its code is passed on.
fn by_code(code: &str, text: &str) -> Failure {
    use StoreErrorKind::{Rejected, Unreachable};
    let to = |redirect: fn(String, u16) -> FailureAction| {
        // An address without a host means the server that said so, which the caller knows.
        let place = text.rsplit(' ').next().and_then(|place| place.rsplit_once(':'));
        place.and_then(|(host, port)| Some(redirect(host.into(), port.parse().ok()?)))
    };
    match code {
        "NOSCRIPT" => Failure::new(Unreachable, FailureAction::SendScript, code),
        "READONLY" => {
            Failure::new(Unreachable, FailureAction::NotPrimary, "READONLY: it is a replica")
        }
        "MOVED" => Failure::new(
            Rejected,
            to(FailureAction::Moved).unwrap_or(FailureAction::KeepConnection),
            CLUSTER,
        ),
        "ASK" => Failure::new(
            Rejected,
            to(FailureAction::Ask).unwrap_or(FailureAction::KeepConnection),
            CLUSTER,
        ),
        "TRYAGAIN" => Failure::new(Unreachable, FailureAction::TryAgain, code),
        "LOADING" | "BUSY" | "CLUSTERDOWN" | "MASTERDOWN" | "UNKILLABLE" => {
            Failure::new(Unreachable, FailureAction::KeepConnection, code)
        }
        "ERR" if text.contains("user executing the script") => Failure::new(
            Rejected,
            FailureAction::CallRefused,
            "NOPERM: its user lacks rights that scripts need",
        ),
        "NOPERM" => Failure::new(Rejected, FailureAction::CallRefused, &missing_right(text)),
        "ERR" if text.contains("cluster support disabled") => Failure::new(
            Rejected,
            FailureAction::KeepConnection,
            "it is no part of a cluster; give its `url` instead",
        ),
        "ERR" if text.contains("DB index is out of range") => {
            Failure::new(Rejected, FailureAction::Reconnect, "it has no database with this number")
        }
        "NOAUTH" => Failure::new(Rejected, FailureAction::Reconnect, "NOAUTH: it wants a password"),
        "WRONGPASS" => {
            Failure::new(Rejected, FailureAction::Reconnect, "it does not accept the credentials")
        }
        "ERR" if text.contains("AUTH") && text.contains("without any password") => Failure::new(
            Rejected,
            FailureAction::Reconnect,
            "it has no password, and was given one",
        ),
        "ERR" if text.contains("unknown command") => {
            Failure::new(Rejected, FailureAction::KeepConnection, NOT_REDIS)
        }
        "OOM" => Failure::new(Rejected, FailureAction::KeepConnection, "OOM: raise its maxmemory"),
        "ERR" if text.contains("max number of clients") => Failure::new(
            Unreachable,
            FailureAction::Reconnect,
            "it has as many clients as it accepts",
        ),
        "MISCONF" | "NOREPLICAS" => Failure::new(Rejected, FailureAction::KeepConnection, code),
        _ => Failure::new(Rejected, FailureAction::CallRefused, code),
    }
}

/// Which right is missing. Of what the server says only the name of a command is passed on.
fn missing_right(text: &str) -> String {
    let quoted = text.split('\'').nth(1).filter(|_| text.contains("to run the"));
    let is_name = |name: &&str| {
        name.len() < 32 && name.chars().all(|c| c.is_ascii_lowercase() || c == '|' || c == '-')
    };
    match quoted.filter(is_name) {
        Some(name) => format!("NOPERM: its user lacks +{name}"),
        None if text.contains("key") => "NOPERM: its user may not use keys of this prefix".into(),
        None => "NOPERM: its user lacks a right".into(),
    }
}

const NOT_REDIS: &str =
    "it does not answer as a server does; is it a sentinel? Those are named in `sentinel`";
const CLUSTER: &str = "it is part of a cluster; name the cluster's nodes instead";

#[cfg(test)]
mod tests;
