//! Pipelined requests, split at random, through the gateway to a recording upstream with all kinds
//! of answers. Each answer carries the number of its request.

mod generate;
mod upstream;

use crate::{
    Node,
    front::gateway::{Gateway, GatewayState},
};
use generate::{AnswerKind, LastRequest, Pipeline, PlannedAnswer, PlannedRequest, pipeline};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use std::{cell::RefCell, path::Path, rc::Rc, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream},
    net::TcpListener,
    task::{LocalSet, yield_now},
};
use tollgate_net::{Limits, tests::rig::Rig};
use upstream::{ReceivedRequest, serve};

/// A conversation that takes longer is stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// A received message, without its framing.
#[derive(Debug, Default)]
struct PlainMessage {
    /// The head, in lower case.
    head: String,
    body: Vec<u8>,
    /// Trailers, each line with its end.
    trailers: String,
}

impl PlainMessage {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.split("\r\n").skip(1).filter_map(|line| line.split_once(": "));
        lines.find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// The first line without the version.
    fn line(&self) -> &str {
        self.head.split("\r\n").next().unwrap()
    }
}

/// Reads messages with a simple, strict parser.
struct MessageReader<S> {
    stream: S,
    buffer: Vec<u8>,
}

impl<S: AsyncRead + Unpin> MessageReader<S> {
    fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Reads more bytes. Returns whether there were any.
    async fn more(&mut self) -> bool {
        self.stream.read_buf(&mut self.buffer).await.is_ok_and(|read| read > 0)
    }

    async fn exact(&mut self, len: usize) -> Vec<u8> {
        while self.buffer.len() < len {
            assert!(self.more().await, "ended within {len} bytes");
        }
        self.buffer.drain(..len).collect()
    }

    /// Reads up to and including `end`; `None` if the stream has ended.
    async fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|part| part == end) {
                return Some(self.buffer.drain(..at + end.len()).collect());
            }
            if !self.more().await {
                assert!(self.buffer.is_empty(), "{:?}", self.buffer.escape_ascii().to_string());
                return None;
            }
        }
    }

    async fn head(&mut self) -> Option<PlainMessage> {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await?).unwrap();
        Some(PlainMessage { head: head.to_ascii_lowercase(), ..PlainMessage::default() })
    }

    async fn body(&mut self, message: &mut PlainMessage, is_answer: bool) {
        if message.header("transfer-encoding") == Some("chunked") {
            assert_eq!(message.header("content-length"), None, "{message:?}");
            loop {
                let line = String::from_utf8(self.until(b"\r\n").await.unwrap()).unwrap();
                match usize::from_str_radix(line.trim_end(), 16).unwrap() {
                    0 => break,
                    size => message.body.extend(self.exact(size).await),
                }
                assert_eq!(self.exact(2).await, b"\r\n");
            }
            while let Some(line) = self.until(b"\r\n").await.filter(|line| line != b"\r\n") {
                message.trailers += str::from_utf8(&line).unwrap();
            }
        } else if let Some(length) = message.header("content-length") {
            message.body = self.exact(length.parse().unwrap()).await;
        } else if is_answer {
            while self.more().await {}
            message.body = std::mem::take(&mut self.buffer);
        }
    }
}

fn gateway(listener: &TcpListener) -> Rc<Gateway> {
    let address = listener.local_addr().unwrap();
    let file = format!("upstream: 'http://{address}'");
    let compiled = tollgate_policy::compile(file.as_bytes()).unwrap();
    let setup = tollgate::engine::GateSetup::of(&compiled);
    let node = Arc::new(Node::new(compiled, setup).unwrap());
    Rc::new(Gateway::new(Arc::new(GatewayState::new(node, Path::new(".")).unwrap())))
}

/// Runs a conversation. Fails unless each request got its own answer and was seen once.
async fn converse(pipeline: Pipeline) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = gateway(&listener);
    let pipeline = Rc::new(pipeline);
    let log: Rc<RefCell<Vec<ReceivedRequest>>> = Rc::default();
    let upstream = tokio::task::spawn_local(serve(listener, pipeline.clone(), log.clone()));
    let rig = Rig::new(Limits::default());
    let (reading, mut writing) = tokio::io::split(rig.connect_to(&gateway));
    let mut reader: MessageReader<tokio::io::ReadHalf<DuplexStream>> = MessageReader::new(reading);
    let asks = pipeline.clone();
    let asking = tokio::task::spawn_local(async move {
        for piece in asks.pieces() {
            // The gateway reads nothing after the last request.
            if writing.write_all(&piece).await.is_err() {
                break;
            }
            yield_now().await;
            yield_now().await;
        }
        writing
    });
    let mut is_open = true;
    for (id, exchange) in pipeline.exchanges.iter().enumerate() {
        assert!(is_open, "closed before {id}");
        is_open = answer(&mut reader, id, exchange, pipeline.version(id)).await;
    }
    match pipeline.last {
        LastRequest::Open => assert!(is_open),
        LastRequest::Close | LastRequest::Http10 => assert!(!is_open),
        // For HTTP/1.0, only a length marks the end of an answer.
        LastRequest::Http10KeepAlive => {
            let last = pipeline.exchanges.last().unwrap();
            assert!(is_open || last.has_answer_body() && last.answered.kind.is_endless());
        }
    }
    if is_open {
        let more = tokio::time::timeout(Duration::from_millis(2), reader.more()).await;
        assert!(more.is_err(), "more than its answers: {:?}", reader.buffer);
        asking.await.unwrap().shutdown().await.unwrap();
    }
    assert!(!reader.more().await, "more than its answers: {:?}", reader.buffer);
    upstream.abort();
    let seen = log.take();
    let expected: Vec<ReceivedRequest> =
        (0..pipeline.exchanges.len()).map(|id| ReceivedRequest::expected(&pipeline, id)).collect();
    assert_eq!(seen, expected, "what the upstream saw");
}

/// Reads one answer, and interim ones before it. Returns whether the connection stays open.
async fn answer<S: AsyncRead + Unpin>(
    reader: &mut MessageReader<S>,
    id: usize,
    exchange: &PlannedRequest,
    version: &str,
) -> bool {
    let PlannedAnswer { kind, interim, .. } = &exchange.answered;
    let (mut interims, mut continues) = (Vec::new(), 0);
    let mut message = loop {
        let message = reader.head().await.unwrap_or_else(|| panic!("no answer to {id}"));
        match message.line().split(' ').nth(1).unwrap() {
            "100" => continues += 1,
            status if status.starts_with('1') => interims.push(status.parse::<u16>().unwrap()),
            _ => break message,
        }
    };
    let is_new = version == "1.1";
    assert!(continues <= usize::from(exchange.expects && is_new), "{continues} of 100");
    let interim: Vec<u16> = interim.iter().copied().filter(|code| *code != 100 && is_new).collect();
    assert_eq!(interims, interim, "interim answers to {id}");
    assert_eq!(message.header("x-id"), Some(&*id.to_string()), "{message:?}");
    let status = kind.status();
    assert_eq!(message.line().split(' ').nth(1), Some(&*status.to_string()), "{message:?}");
    if exchange.has_answer_body() {
        reader.body(&mut message, true).await;
        let is_its = message.body == exchange.answered.data(id);
        assert!(is_its, "answer {id}: {}{} bytes", message.head, message.body.len());
        let has_trailers = matches!(kind, AnswerKind::Chunks { has_trailers: true, .. }) && is_new;
        let trailers = if has_trailers { format!("x-t: {id}\r\n") } else { String::new() };
        assert_eq!(message.trailers, trailers, "trailers of answer {id}: {}", message.head);
    }
    message.header("connection") != Some("close")
}

impl Pipeline {
    /// The HTTP version of a request.
    fn version(&self, id: usize) -> &'static str {
        let is_last = id + 1 == self.exchanges.len();
        match self.last {
            LastRequest::Http10 | LastRequest::Http10KeepAlive if is_last => "1.0",
            _ => "1.1",
        }
    }
}

#[test]
fn each_request_gets_its_answer() {
    let config =
        Config { cases: 250, failure_persistence: None, max_shrink_iters: 30, ..Config::default() };
    let mut runner = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => TestRunner::new(Config { failure_persistence: None, ..Config::default() }),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    let tested = runner.run(&pipeline(), |pipeline| {
        // In real time: virtual time would pass while a socket's bytes are in transit.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let timed = LocalSet::new()
            .block_on(&runtime, async { tokio::time::timeout(PATIENCE, converse(pipeline)).await });
        timed.map_err(|_| TestCaseError::fail("stuck"))
    });
    if let Err(error) = tested {
        panic!("{error}");
    }
}
