//! Posts batches. Runs on the exporter's thread, and may block it.

use super::{LOST_BATCHES, Signal};
use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use std::future::{Future, ready};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// Limit of response bytes; collectors send far fewer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Posts batches of one signal. Opens a connection per batch: a batch is sent every few seconds.
#[derive(Debug)]
pub struct OtlpClient {
    signal: Signal,
    runtime: Runtime,
    timeout: Duration,
    /// Whether the last batch was rejected, so that only changes are logged.
    is_failing: AtomicBool,
}

impl OtlpClient {
    /// Creates a client for one signal. Requests end after `timeout`.
    ///
    /// # Errors
    ///
    /// If the runtime or the root certificates cannot be loaded.
    pub fn new(signal: Signal, timeout: Duration) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        Ok(Self { signal, runtime, timeout, is_failing: AtomicBool::new(false) })
    }

    /// Sends a batch. Logs the first rejection, and the first success after it.
    pub fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let endpoint = request.uri().to_string();
        let sent = self.runtime.block_on(async {
            tokio::time::timeout(self.timeout, post(request)).await.unwrap_or_else(|_| {
                Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time").into())
            })
        });
        let failure = match &sent {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(answer.status().to_string()),
            Err(error) => Some(error.to_string()),
        };
        if failure.is_some() {
            LOST_BATCHES[self.signal as usize].fetch_add(1, Ordering::Relaxed);
        }
        let was_down = self.is_failing.swap(failure.is_some(), Ordering::Relaxed);
        match (failure, self.signal) {
            (Some(error), Signal::Traces) if !was_down => {
                tracing::warn!(%endpoint, %error, "the trace collector rejects spans; they are dropped");
            }
            (Some(error), Signal::Metrics) if !was_down => {
                tracing::warn!(%endpoint, %error, "the metrics collector rejects metrics; the next batch has all counts");
            }
            (None, signal) if was_down => {
                tracing::info!(%endpoint, signal = signal.name(), "the collector accepts batches again");
            }
            _ => {}
        }
        sent
    }
}

impl HttpClient for OtlpClient {
    fn send_bytes<'life, 'sent>(
        &'life self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sent>>
    where
        'life: 'sent,
    {
        Box::pin(ready(self.send(request)))
    }
}

async fn post(mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let authority = request.uri().authority().ok_or("the endpoint has no host")?;
    let (host, port) = (authority.host(), authority.port_u16().unwrap_or(80));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, port)).await?;
    let name = HeaderValue::from_str(authority.as_str())?;
    request.headers_mut().insert(HOST, name);
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse::<Uri>()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request.map(Full::new)).await?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
    connection.abort();
    Ok(Response::from_parts(head, body))
}
