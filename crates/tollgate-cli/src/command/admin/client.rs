//! Calls of the admin API over HTTP/1.1, with errors that say what to check.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// The environment variable with the token.
const VARIABLE: &str = "TOLLGATE_ADMIN_TOKEN";
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The largest response body, larger than the metrics of any policy.
const BODY_BYTES_MAX: usize = 256 << 20;

/// The address of an admin API, and the token for it.
pub(crate) struct Client {
    host: String,
    port: u16,
    /// The value of `Host`.
    authority: String,
    /// The prefix of every path, for an API behind a proxy.
    prefix: String,
    token: Option<HeaderValue>,
}

/// A response, successful or not.
pub(crate) struct AdminResponse {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Why a call has no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("{0}; write it as http://127.0.0.1:8090")]
    Url(String),
    #[error("cannot read the token in {}: {}", .0.display(), .1)]
    TokenFile(std::path::PathBuf, std::io::Error),
    #[error("{0} has no token: one word of visible ASCII")]
    Token(String),
    #[error(
        "nothing listens at {0}; check that tollgate runs, that its file has `listen.admin`, and --url or TOLLGATE_ADMIN_URL"
    )]
    Refused(String),
    #[error("cannot connect to {0}: {1}; check --url or TOLLGATE_ADMIN_URL")]
    Unreachable(String, String),
    #[error("{0} does not answer; check that it is a tollgate's admin API")]
    Slow(String),
    #[error("{0} sent an invalid response: {1}; check that it is a tollgate's admin API")]
    Broken(String, String),
    /// A stream was refused with 401: the address and the reason.
    #[error("{0} did not accept the token: {1}; check TOLLGATE_ADMIN_TOKEN or --token-file")]
    BadToken(String, String),
    /// A stream was refused: the address, the status and the reason.
    #[error("{0} answered {1}: {2}")]
    Denied(String, u16, String),
    #[error("{0} closed the stream; it may have stopped or restarted")]
    Ended(String),
}

impl AdminResponse {
    /// The body as JSON; null if it is not JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

impl Client {
    pub(super) fn new(url: &str, token_file: Option<&Path>) -> Result<Self, ClientError> {
        if url.contains('@') {
            // The text before the `@` may be a secret, so the message does not quote it.
            let why = "the URL has a user name; the token is not part of the URL";
            return Err(ClientError::Url(why.to_owned()));
        }
        let bad = |why: &str| ClientError::Url(format!("`{url}` {why}"));
        let uri: Uri = url.parse().map_err(|_| bad("is not a URL"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(bad(
                    "is https, which this command does not support; use an SSH tunnel",
                ));
            }
            _ => return Err(bad("does not start with http://")),
        }
        let authority = uri.authority().ok_or_else(|| bad("has no host"))?.as_str();
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(bad("has no host"));
        }
        Ok(Self {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(80),
            authority: authority.to_owned(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            token: token(token_file)?,
        })
    }

    /// Calls, and waits for the response.
    pub(crate) fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<AdminResponse, ClientError> {
        self.runtime()?.block_on(self.call_async(method, path, body))
    }

    /// [`call`](Self::call) on the caller's runtime.
    pub(crate) async fn call_async(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<AdminResponse, ClientError> {
        let exchange = async {
            let (status, body) = self.exchange(method, path, body).await?;
            let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
            let body = body.map_err(|error| self.broken(&error))?.to_bytes();
            Ok(AdminResponse { status, body: String::from_utf8_lossy(&body).into_owned() })
        };
        let answered = timeout(ANSWER_WITHIN, exchange).await;
        answered.unwrap_or_else(|_| Err(ClientError::Slow(self.authority.clone())))
    }

    /// Opens a response body that does not end.
    pub(super) async fn open(&self, path: &str) -> Result<Incoming, ClientError> {
        let exchange = timeout(ANSWER_WITHIN, self.exchange("GET", path, None)).await;
        let exchanged = exchange.map_err(|_| ClientError::Slow(self.authority.clone()))?;
        let (status, body) = exchanged?;
        if status == 200 {
            return Ok(body);
        }
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| self.broken(&error))?.to_bytes();
        let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
        let detail = problem["detail"].as_str().unwrap_or("no reason");
        let (to, detail) = (self.authority.clone(), detail.to_owned());
        Err(match status {
            401 => ClientError::BadToken(to, detail),
            _ => ClientError::Denied(to, status, detail),
        })
    }

    /// Creates the runtime for calls.
    pub(crate) fn runtime(&self) -> Result<Runtime, ClientError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| self.broken(&error))
    }

    /// Host and port.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    fn broken(&self, why: &dyn fmt::Display) -> ClientError {
        ClientError::Broken(self.authority.clone(), why.to_string())
    }

    async fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Incoming), ClientError> {
        let request = self.request(method, path, body).map_err(|error| self.broken(&error))?;
        let stream = self.connect().await?;
        let broken = |error: hyper::Error| self.broken(&error);
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // The task ends with the runtime.
        tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status().as_u16();
        Ok((status, response.into_body()))
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

/// Reads the token from the file or the environment; `None` if there is neither.
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
