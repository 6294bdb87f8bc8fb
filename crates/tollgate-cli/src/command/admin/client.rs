//! One call over HTTP/1.1, and what to check when there is no answer.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The environment variable with the token.
const VARIABLE: &str = "TOLLGATE_ADMIN_TOKEN";
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// More than any policy's metrics.
const BODY_BYTES_MAX: usize = 256 << 20;

/// Where to call, and with which token.
pub(super) struct Client {
    host: String,
    port: u16,
    /// What `Host` says.
    authority: String,
    /// In front of every path, for an API behind a proxy.
    prefix: String,
    token: Option<HeaderValue>,
}

/// A response, successful or not.
pub(super) struct AdminResponse {
    pub(super) status: u16,
    pub(super) body: String,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum ClientError {
    Url(String),
    TokenFile(std::path::PathBuf, std::io::Error),
    Token(String),
    Refused(String),
    Unreachable(String, String),
    Slow(String),
    Broken(String, String),
}

impl AdminResponse {
    /// The body; null where it is not JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

impl Client {
    pub(super) fn new(url: &str, token_file: Option<&Path>) -> Result<Self, ClientError> {
        if url.contains('@') {
            // What stands before it may be a secret, so it is not repeated.
            let why = "the URL holds a user name; the token is not part of the URL";
            return Err(ClientError::Url(why.to_owned()));
        }
        let bad = |why: &str| ClientError::Url(format!("`{url}` {why}"));
        let uri: Uri = url.parse().map_err(|_| bad("is not a URL"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(bad("is https, which this command does not speak; use an SSH tunnel"));
            }
            _ => return Err(bad("does not start with http://")),
        }
        let authority = uri.authority().ok_or_else(|| bad("names no host"))?.as_str();
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(bad("names no host"));
        }
        Ok(Self {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(80),
            authority: authority.to_owned(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            token: token(token_file)?,
        })
    }

    /// Calls and waits for the answer.
    pub(super) fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<AdminResponse, ClientError> {
        let broken =
            |why: &dyn fmt::Display| ClientError::Broken(self.authority.clone(), why.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| broken(&error))?;
        let request = self.request(method, path, body).map_err(|error| broken(&error))?;
        runtime.block_on(async {
            let stream = self.connect().await?;
            let exchange = async {
                let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
                // It ends with the runtime.
                tokio::spawn(connection);
                let (head, body) = sender.send_request(request).await?.into_parts();
                let body = Limited::new(body, BODY_BYTES_MAX).collect().await?.to_bytes();
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>((head.status.as_u16(), body))
            };
            let exchanged = timeout(ANSWER_WITHIN, exchange).await;
            let exchanged = exchanged.map_err(|_| ClientError::Slow(self.authority.clone()))?;
            let (status, body) = exchanged.map_err(|error| broken(&error))?;
            Ok(AdminResponse { status, body: String::from_utf8_lossy(&body).into_owned() })
        })
    }

    async fn connect(&self) -> Result<TcpStream, ClientError> {
        let to = || self.authority.clone();
        let connecting = TcpStream::connect((&*self.host, self.port));
        match timeout(CONNECT_WITHIN, connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                Err(ClientError::Refused(to()))
            }
            Ok(Err(error)) => Err(ClientError::Unreachable(to(), error.to_string())),
            Err(_) => Err(ClientError::Slow(to())),
        }
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.prefix))
            .header(HOST, &self.authority);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(Full::from(body.map(Value::to_string).unwrap_or_default()))
    }
}

/// The token, from the file or the environment; no token where there is neither.
fn token(file: Option<&Path>) -> Result<Option<HeaderValue>, ClientError> {
    let (text, origin) = match file {
        Some(path) => {
            let read = std::fs::read_to_string(path);
            let text = read.map_err(|error| ClientError::TokenFile(path.to_owned(), error))?;
            (text, path.display().to_string())
        }
        None => match std::env::var_os(VARIABLE) {
            Some(value) => (value.to_string_lossy().into_owned(), VARIABLE.to_owned()),
            None => return Ok(None),
        },
    };
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ClientError::Token(origin));
    }
    let mut value =
        HeaderValue::from_str(&format!("Bearer {text}")).map_err(|_| ClientError::Token(origin))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(why) => write!(f, "{why}; write it as http://127.0.0.1:8090"),
            Self::TokenFile(path, error) => {
                write!(f, "cannot read the token in {}: {error}", path.display())
            }
            Self::Token(origin) => write!(f, "{origin} holds no token: one word of visible ASCII"),
            Self::Refused(to) => write!(
                f,
                "nothing listens at {to}; check that tollgate runs, that its file has `listen.admin`, and --url or TOLLGATE_ADMIN_URL"
            ),
            Self::Unreachable(to, why) => {
                write!(f, "cannot connect to {to}: {why}; check --url or TOLLGATE_ADMIN_URL")
            }
            Self::Slow(to) => {
                write!(f, "{to} does not answer; check that it is a tollgate's admin API")
            }
            Self::Broken(to, why) => {
                write!(
                    f,
                    "{to} gave no answer that makes sense: {why}; check that it is a tollgate's admin API"
                )
            }
        }
    }
}
