//! Redis, as a file describes it.

use super::StorageError;
use super::background::Background;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use tollgate::store::RedisStore;
use tollgate::store::redis::Options;
use tollgate_policy::settings::{Redis, RedisServer, SecretSource};

/// A store in Redis, and the thread on which its connections live.
#[derive(Debug)]
pub struct Remote {
    // Before the thread, so that its tasks end by themselves.
    pub(super) store: RedisStore,
    _background: Background,
}

impl Remote {
    /// Starts to connect, and answers at once.
    pub(super) fn start(
        settings: &Redis,
        variable: impl FnOnce(&str) -> Option<OsString>,
    ) -> Result<Self, StorageError> {
        let password = password(settings, variable)?;
        let client = client(settings, password.as_deref())?;
        let options = options(settings, password.as_deref());
        let background = Background::start("store").map_err(StorageError::System)?;
        let store = {
            let _inside = background.handle().enter();
            RedisStore::new(client, options)
        };
        Ok(Self { store, _background: background })
    }
}

/// The password, looked for where the file says.
pub(crate) fn password(
    settings: &Redis,
    variable: impl FnOnce(&str) -> Option<OsString>,
) -> Result<Option<String>, StorageError> {
    match settings.password.as_ref().map(|secret| secret.expose()) {
        None => Ok(None),
        Some(SecretSource::Literal(text)) => Ok(Some(text.to_string())),
        Some(SecretSource::Env(name)) => {
            let value = variable(name).and_then(|value| value.into_string().ok());
            // Files that variables are set from like to end in a newline.
            let value = value.map(|value| value.trim_end_matches(['\r', '\n']).to_owned());
            value.filter(|value| !value.is_empty()).map(Some).ok_or_else(|| StorageError::Unset {
                field: "store.redis.password",
                variable: name.clone(),
            })
        }
    }
}

/// Where to connect, and as whom.
pub(crate) fn client(
    settings: &Redis,
    password: Option<&str>,
) -> Result<redis::Client, StorageError> {
    let mut login = redis::RedisConnectionInfo::default().set_skip_set_lib_name();
    if let Some(username) = &settings.username {
        login = login.set_username(username);
    }
    if let Some(password) = password {
        login = login.set_password(password);
    }
    let address = match &settings.server {
        RedisServer::Tcp { .. } if settings.tls.is_some() => {
            return Err(StorageError::Unavailable("store.redis.tls"));
        }
        RedisServer::Tcp { host, port, database } => {
            login = login.set_db((*database).into());
            redis::ConnectionAddr::Tcp(host.to_string(), *port)
        }
        RedisServer::Unix { path } => redis::ConnectionAddr::Unix((&**path).into()),
        RedisServer::Sentinel { .. } => {
            return Err(StorageError::Unavailable("store.redis.sentinel"));
        }
        _ => return Err(StorageError::Unavailable("store.redis.cluster")),
    };
    let invalid = |error: redis::RedisError| StorageError::Invalid(error.category().into());
    let info = redis::IntoConnectionInfo::into_connection_info(address).map_err(invalid)?;
    redis::Client::open(info.set_redis_settings(login)).map_err(invalid)
}

fn options(settings: &Redis, password: Option<&str>) -> Options {
    let mut options = Options::default();
    options.prefix = settings.prefix.to_string();
    options.caller_time = settings.caller_time;
    options.deadline = settings.deadline;
    options.connections = settings.connections as usize;
    options.in_flight = settings.in_flight as usize;
    options.secret = secret(password);
    options
}

/// What keys are hashed with. All nodes of a store know the password and no client does; without one there is nothing that only the
/// nodes know, and keys are hashed all the same.
fn secret(password: Option<&str>) -> Vec<u8> {
    let mut hash = Sha256::new_with_prefix(b"tollgate: names of keys");
    hash.update(password.unwrap_or_default());
    hash.finalize().to_vec()
}
