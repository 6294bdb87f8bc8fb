//! Envoy's rate limit service over real sockets.

mod calls;
mod deadline;
mod documented;
mod failure;
mod files;
mod hostile;
mod model;
mod native;
mod original;
mod reach;
mod reload;
pub(crate) mod response;
mod shed;
mod stores;
pub(crate) mod tls;
mod watch;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use response::{DescriptorStatus, OK, OVER_LIMIT, RateLimitResponse};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use tollgate_observe::metrics::{ExpositionFormat, Front, MetricsSnapshot};
use tollgate_server::config::Config;
use tollgate_server::front::grpc::messages::{
    Entry, RateLimitDescriptor, RateLimitOverride, RateLimitRequest, UInt64Value,
};
use tollgate_server::front::grpc::{CallContext, RateLimitService};
use tollgate_server::serve::{RunningServer, Server};

const CALL: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
/// A window of a year rarely ends during a test.
const YEAR: i32 = 6;

/// A node in its own folder. Dropping it removes the folder.
pub(crate) struct Node {
    pub(crate) running: RunningServer,
    pub(crate) folder: RatelimitFolder,
}

/// A folder that is removed on drop.
pub(crate) struct RatelimitFolder(PathBuf);

impl RatelimitFolder {
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("tollgate-rls-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl std::ops::Deref for RatelimitFolder {
    type Target = PathBuf;

    fn deref(&self) -> &PathBuf {
        &self.0
    }
}

impl Drop for RatelimitFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Node {
    /// A node with the rest of its policy, and other files beside it.
    pub(crate) fn start(rest: &str, files: &[(&str, &str)]) -> Self {
        let folder = RatelimitFolder::new();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        Self::within(folder, "'127.0.0.1:0'", rest)
    }

    /// A node in a folder with files, with its `listen.grpc` and the rest of its policy.
    pub(crate) fn within(folder: RatelimitFolder, grpc: &str, rest: &str) -> Self {
        let listen = format!("listen: {{grpc: {grpc}, http: '127.0.0.1:0', admin: '127.0.0.1:0'}}");
        fs::write(folder.join("tollgate.yaml"), format!("{listen}\n{rest}")).unwrap();
        let running = Server::start(Config::file(folder.join("tollgate.yaml"))).unwrap();
        Self { running, folder }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.address(Front::Grpc).unwrap()
    }

    /// The calls that the metrics count as `invalid`.
    fn invalid_calls(&self) -> u64 {
        let name = "tollgate_requests_total{front=\"grpc\",outcome=\"invalid\"} ";
        let (now, format) = (MetricsSnapshot::default(), ExpositionFormat::Prometheus);
        let page = self.running.node().metrics.exposition(&now, format);
        page.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).unwrap()
    }

    /// One call from Envoy.
    fn ask(&self, domain: &str, descriptors: Vec<RateLimitDescriptor>) -> RateLimitResponse {
        self.ask_all(&request(domain, descriptors)).unwrap()
    }

    fn ask_all(&self, request: &RateLimitRequest) -> Result<RateLimitResponse, (u16, String)> {
        let answer = call(self.address(), CALL, &framed(request), &[]);
        answer.message().map(|bytes| RateLimitResponse::decode(bytes).unwrap())
    }
}

/// The response of a service that is called without a socket.
pub(crate) async fn decide(
    service: &RateLimitService,
    request: &RateLimitRequest,
    caller: CallContext<'_>,
    now_us: u64,
) -> RateLimitResponse {
    let framed = service.answer_at(request, caller, now_us).await.unwrap();
    RateLimitResponse::decode(&framed[5..]).unwrap()
}

fn request(domain: &str, descriptors: Vec<RateLimitDescriptor>) -> RateLimitRequest {
    RateLimitRequest { domain: domain.to_owned(), descriptors, hits_addend: 0 }
}

fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |(key, value): &(&str, &str)| Entry { key: (*key).into(), value: (*value).into() };
    RateLimitDescriptor { entries: entries.iter().map(entry).collect(), ..Default::default() }
}

fn user(name: &str) -> RateLimitDescriptor {
    descriptor(&[("user", name)])
}

fn hits(mut descriptor: RateLimitDescriptor, value: u64) -> RateLimitDescriptor {
    descriptor.hits_addend = Some(UInt64Value { value });
    descriptor
}

fn own(
    mut descriptor: RateLimitDescriptor,
    requests_per_unit: u32,
    unit: i32,
) -> RateLimitDescriptor {
    descriptor.limit = Some(RateLimitOverride { requests_per_unit, unit });
    descriptor
}

/// For each status: whether it is OK, and the remaining units.
fn left(response: &RateLimitResponse) -> Vec<(bool, u32)> {
    let one = |status: &DescriptorStatus| {
        assert!([OK, OVER_LIMIT].contains(&status.code), "never UNKNOWN");
        (status.code == OK, status.limit_remaining)
    };
    assert!([OK, OVER_LIMIT].contains(&response.overall_code), "never UNKNOWN");
    response.statuses.iter().map(one).collect()
}

fn header<'a>(response: &'a RateLimitResponse, name: &str) -> Option<&'a str> {
    let mut headers = response.response_headers_to_add.iter();
    headers.find(|header| header.key == name).map(|header| &*header.value)
}

/// The result of a call.
#[derive(Debug)]
struct GrpcAnswer {
    headers: HeaderMap,
    body: Bytes,
    trailers: HeaderMap,
}

impl GrpcAnswer {
    /// The message, or the status and its text.
    fn message(&self) -> Result<&[u8], (u16, String)> {
        assert_eq!(self.headers["content-type"], "application/grpc");
        let all = [&self.headers, &self.trailers];
        let field = |name: &str| all.iter().find_map(|map| map.get(name)?.to_str().ok());
        match field("grpc-status").unwrap() {
            "0" => {
                assert_eq!(self.body[0], 0);
                Ok(&self.body[5..])
            }
            other => Err((other.parse().unwrap(), field("grpc-message").unwrap_or("").to_owned())),
        }
    }
}

fn framed(message: &impl Message) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(0);
    out.put_u32(message.encoded_len() as u32);
    message.encode(&mut out).unwrap();
    out.freeze()
}

fn call(address: SocketAddr, path: &str, body: &Bytes, fields: &[(&str, &str)]) -> GrpcAnswer {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (head, body) = open(address, path, body, fields).await.into_parts();
        let collected = body.collect().await.unwrap();
        let trailers = collected.trailers().cloned().unwrap_or_default();
        GrpcAnswer { headers: head.headers, body: collected.to_bytes(), trailers }
    })
}

/// A call whose response has started.
async fn open(
    address: SocketAddr,
    path: &str,
    body: &Bytes,
    fields: &[(&str, &str)],
) -> hyper::Response<hyper::body::Incoming> {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut client, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::post(format!("http://x{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.clone())).unwrap();
    client.send_request(request).await.unwrap()
}
