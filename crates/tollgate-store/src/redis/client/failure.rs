//! Failed calls: the error for the caller, and the action for the connection and the call.

use crate::{StoreError, StoreErrorKind};
use redis::RedisError;

/// A failed call.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) error: StoreError,
    pub(crate) action: FailureAction,
}

/// The action after a failure. After `KeepConnection`, `CallRefused` and `Reconnect` a call is
/// never repeated. All other actions come from a server that did nothing, so the call may be
/// repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FailureAction {
    KeepConnection,
    /// Keep the connection; the server may answer other calls.
    CallRefused,
    /// Close the connection and dial again.
    Reconnect,
    /// Send the script's text.
    SendScript,
    /// Find the primary: this server no longer accepts writes.
    NotPrimary,
    /// Send this and all other calls for the slot to this address.
    Moved(String, u16),
    /// Send only this call to this address, after `ASKING`.
    Ask(String, u16),
    /// Wait: the slot migrates, and its keys are on two servers.
    TryAgain,
    /// Send one call per slot: a call over several slots met a key that the server does not have,
    /// before it wrote anything.
    NotLocal,
}

impl Failure {
    pub(crate) fn timeout() -> Self {
        let error = StoreError::new(StoreErrorKind::Timeout, "");
        Self { error, action: FailureAction::Reconnect }
    }

    pub(crate) const fn is_redirection(&self) -> bool {
        matches!(
            self.action,
            FailureAction::Moved(..) | FailureAction::Ask(..) | FailureAction::TryAgain
        )
    }

    pub(crate) fn closed_by_server() -> Self {
        Self::new(StoreErrorKind::Unreachable, FailureAction::Reconnect, "it closed the connection")
    }

    pub(crate) fn primary_changed() -> Self {
        let detail = "another server is the primary";
        Self::new(StoreErrorKind::Unreachable, FailureAction::Reconnect, detail)
    }

    pub(crate) fn new(kind: StoreErrorKind, action: FailureAction, detail: &str) -> Self {
        Self { error: StoreError::new(kind, detail), action }
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
            // I/O errors contain neither keys nor passwords.
            redis::ErrorKind::Io => {
                Self::new(Unreachable, FailureAction::Reconnect, &error.to_string())
            }
            _ => Self::new(Unreachable, FailureAction::Reconnect, ""),
        }
    }
}

/// The code and text of a server's error. Redis before 7 wraps errors from inside a script.
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

/// Maps an error by its code. Only the code is passed on: the text may repeat arguments.
fn by_code(code: &str, text: &str) -> Failure {
    use FailureAction::{
        Ask, CallRefused, KeepConnection, Moved, NotLocal, NotPrimary, Reconnect, SendScript,
        TryAgain,
    };
    use StoreErrorKind::{Rejected, Unreachable};
    let redirect = |to: fn(String, u16) -> FailureAction| {
        // An empty host means the server that sent the redirect.
        let address = text.rsplit(' ').next().and_then(|address| address.rsplit_once(':'));
        let action = address.and_then(|(host, port)| Some(to(host.into(), port.parse().ok()?)));
        (Rejected, action.unwrap_or(KeepConnection), IN_A_CLUSTER)
    };
    let (kind, action, detail) = match code {
        "NOSCRIPT" => (Unreachable, SendScript, code),
        "READONLY" => (Unreachable, NotPrimary, "READONLY: it is a replica"),
        "MOVED" => redirect(Moved),
        "ASK" => redirect(Ask),
        "TRYAGAIN" => (Unreachable, TryAgain, code),
        "LOADING" | "BUSY" | "CLUSTERDOWN" | "MASTERDOWN" | "UNKILLABLE" => {
            (Unreachable, KeepConnection, code)
        }
        "NOPERM" => return Failure::new(Rejected, CallRefused, &missing_right(text)),
        "NOAUTH" => (Rejected, Reconnect, "NOAUTH: it wants a password"),
        "WRONGPASS" => (Rejected, Reconnect, "it does not accept the credentials"),
        "OOM" => (Rejected, KeepConnection, "OOM: raise its maxmemory"),
        "MISCONF" | "NOREPLICAS" => (Rejected, KeepConnection, code),
        "ERR" if text.contains("user executing the script") => {
            (Rejected, CallRefused, "NOPERM: its user lacks rights that scripts need")
        }
        "ERR" if NOT_LOCAL.iter().any(|part| text.contains(part)) => (Unreachable, NotLocal, code),
        "ERR" if text.contains("cluster is down") => (Unreachable, KeepConnection, "CLUSTERDOWN"),
        "ERR" if text.contains("cluster support disabled") => {
            (Rejected, KeepConnection, "it is not part of a cluster; give its `url` instead")
        }
        "ERR" if text.contains("DB index is out of range") => {
            (Rejected, Reconnect, "it has no database with this number")
        }
        "ERR" if text.contains("AUTH") && text.contains("without any password") => {
            (Rejected, Reconnect, "it has no password, but one is configured")
        }
        "ERR" if text.contains("unknown command") => (Rejected, KeepConnection, NOT_REDIS),
        "ERR" if text.contains("max number of clients") => {
            (Unreachable, Reconnect, "it has reached its `maxclients`")
        }
        _ => (Rejected, CallRefused, code),
    };
    Failure::new(kind, action, detail)
}

/// The missing right. From the server's text, only the command's name is passed on.
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

/// Error texts of a server whose script uses a key that the server does not have: moved, migrating,
/// or in an unassigned slot. The last two texts are from Redis 6.2 and 7.0, about the shebang line
/// of a script over several slots.
const NOT_LOCAL: [&str; 5] = [
    "access a non local key",
    "undeclared keys were accessed during rehashing",
    "access a slot not served",
    "flag in script shebang",
    "unexpected symbol near '#'",
];
const NOT_REDIS: &str =
    "it does not answer like Redis; is it a sentinel? Sentinels are named in `sentinel`";
const IN_A_CLUSTER: &str = "it is part of a cluster; name the cluster's nodes instead";

#[cfg(test)]
mod tests;
