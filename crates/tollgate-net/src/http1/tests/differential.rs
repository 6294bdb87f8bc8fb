//! Differential tests: the same bytes to this HTTP/1.1 server and to hyper's.
//!
//! Requests that this server accepts, hyper must read alike. Requests that only hyper accepts must
//! be refused for a [`Reason`].

mod generate;
mod reason;

use crate::{
    ClientConnection, Handler, HttpResponse, Limits, Request, RequestBody, RequestHead,
    tests::rig::{Rig, run},
};
use generate::conversation;
use http_body_util::BodyExt;
use hyper::{
    HeaderMap, Response, StatusCode, Uri, Version, body::Incoming, server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use proptest::{
    prelude::*,
    sample::Index,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner},
};
use reason::{Ending, Reason, walk};
use std::{cell::RefCell, convert::Infallible, rc::Rc, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A complete request. Headers are sorted by name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SeenRequest {
    method: String,
    /// The target in the form of a URI, or unchanged if it is not a URI.
    target: String,
    version: Version,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    trailers: Vec<(String, Vec<u8>)>,
}

impl SeenRequest {
    fn ours(head: &RequestHead<'_>) -> Self {
        let lower = |name: &[u8]| String::from_utf8(name.to_ascii_lowercase()).unwrap();
        let headers = head.headers.iter().map(|(name, value)| (lower(name), value.to_vec()));
        Self {
            method: head.method.into(),
            target: head.target.parse().map_or(head.target.into(), |uri: Uri| uri.to_string()),
            version: head.version,
            headers: sorted(headers),
            body: Vec::new(),
            trailers: Vec::new(),
        }
    }

    /// Reads a body to its end. Returns whether the end came.
    async fn read(
        &mut self,
        mut body: impl hyper::body::Body<Data = bytes::Bytes> + Unpin,
    ) -> bool {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            match frame.into_data() {
                Ok(data) => self.body.extend_from_slice(&data),
                Err(frame) => self.trailers = of_map(frame.trailers_ref().unwrap()),
            }
        }
        true
    }
}

fn sorted(headers: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    let mut headers: Vec<_> = headers.collect();
    // A stable sort keeps the order of values of one name.
    headers.sort_by(|a, b| a.0.cmp(&b.0));
    headers
}

fn of_map(map: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    sorted(map.iter().map(|(name, value)| (name.as_str().into(), value.as_bytes().to_vec())))
}

/// The result of a conversation with one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Conversation {
    /// Complete requests.
    seen: Vec<SeenRequest>,
    /// The number of accepted heads.
    begun: usize,
    /// The statuses of the final answers.
    statuses: Vec<u16>,
}

/// Records requests, and answers 404, which does not close a connection.
#[derive(Default)]
struct Recorder(RefCell<Conversation>);

impl Handler for Recorder {
    async fn handle(
        &self,
        request: Request<'_>,
        _: &Rc<ClientConnection>,
        answer: &mut HttpResponse,
    ) {
        self.0.borrow_mut().begun += 1;
        let mut seen = SeenRequest::ours(&request.head);
        let is_whole = match request.body {
            RequestBody::Full(bytes) => {
                seen.body.extend_from_slice(bytes);
                true
            }
            RequestBody::Stream(upload) => seen.read(upload).await,
        };
        answer.status = StatusCode::BAD_REQUEST;
        if is_whole {
            answer.status = StatusCode::NOT_FOUND;
            self.0.borrow_mut().seen.push(seen);
        }
    }
}

async fn ours(bytes: &[u8], cuts: &[usize]) -> Conversation {
    let rig = Rig::new(Limits::default());
    let recorder = Rc::new(Recorder::default());
    let mut statuses = talk(rig.connect_to(&recorder), bytes, cuts).await;
    let is_line = bytes.last() == Some(&b'\n');
    // This server checks the rest of a head only once a line has ended.
    if !is_line && matches!(walk(bytes).1, Ending::Head(..)) && statuses.last() == Some(&400) {
        statuses.pop();
    }
    let mut conversation = Conversation { statuses, ..recorder.0.take() };
    // A malformed body in the same piece as its head is refused with the head.
    if let (spans, Ending::Body(_)) = walk(bytes) {
        conversation.begun = spans.len();
    }
    conversation
}

async fn hypers(bytes: &[u8], cuts: &[usize]) -> Conversation {
    let recorder = Rc::new(Recorder::default());
    let (near, far) = tokio::io::duplex(64 * 1024);
    let shared = recorder.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let recorder = shared.clone();
        async move {
            recorder.0.borrow_mut().begun += 1;
            let (parts, body) = request.into_parts();
            let mut seen = SeenRequest {
                method: parts.method.to_string(),
                target: parts.uri.to_string(),
                version: parts.version,
                headers: of_map(&parts.headers),
                body: Vec::new(),
                trailers: Vec::new(),
            };
            let mut response = Response::new(http_body_util::Empty::<bytes::Bytes>::new());
            *response.status_mut() = StatusCode::BAD_REQUEST;
            if seen.read(body).await {
                *response.status_mut() = StatusCode::NOT_FOUND;
                recorder.0.borrow_mut().seen.push(seen);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection =
        http1::Builder::new().half_close(true).serve_connection(TokioIo::new(far), service);
    tokio::task::spawn_local(async move {
        // hyper returns an error for every conversation that it rejects.
        let _ = connection.await;
    });
    let statuses = talk(near, bytes, cuts).await;
    Conversation { statuses, ..recorder.0.take() }
}

/// Sends all bytes, split at `cuts`, then closes its side. Returns the statuses of the answers.
async fn talk(mut stream: DuplexStream, bytes: &[u8], cuts: &[usize]) -> Vec<u16> {
    let mut from = 0;
    for cut in cuts.iter().copied().chain([bytes.len()]) {
        // The server may already have closed.
        if stream.write_all(&bytes[from..cut]).await.is_err() {
            break;
        }
        from = cut;
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
    // Virtual time passes only while every task waits.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let _ = stream.shutdown().await;
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).await.unwrap();
    let text = String::from_utf8_lossy(&answers);
    let codes = text.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].parse().unwrap());
    codes.filter(|code| *code != 100).collect()
}

/// Returns the reason of a legitimate difference, or the fault.
fn compare(
    bytes: &[u8],
    ours: &Conversation,
    hypers: &Conversation,
) -> Result<Option<Reason>, String> {
    let (spans, end) = walk(bytes);
    let told = |what: &str| Err(format!("{what}: {end:?} after {spans:?}"));
    let whole = ours.seen.len();
    if ours.statuses.iter().filter(|status| **status == 404).count() != whole {
        return told("each request has one answer");
    }
    for (index, seen) in ours.seen.iter().enumerate() {
        if hypers.seen.get(index) != Some(seen) {
            // hyper accepts only targets that its URI type can parse.
            let is_uri = seen.target.parse::<Uri>().is_ok();
            return match is_uri || hypers.begun > index {
                true => told("both read an accepted request alike"),
                false => Ok(Some(Reason::TargetIsNoUri)),
            };
        }
    }
    let (is_begun, is_read) = (hypers.begun > ours.begun, hypers.seen.len() > whole);
    if !is_begun && !is_read {
        return Ok(None);
    }
    match Reason::find(bytes, &spans, end, whole) {
        Some(reason) => Ok(Some(reason)),
        None => told("a refusal has a listed reason"),
    }
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// A runner with fixed seeds, unless the environment asks for more cases.
fn runner(cases: u32) -> TestRunner {
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    }
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn is_alike(bytes: &[u8], cuts: &[usize]) -> Result<Option<Reason>, String> {
    let mut compared = Ok(None);
    run(async {
        let whole = ours(bytes, &[]).await;
        let byte_by_byte: Vec<usize> = (1..bytes.len()).collect();
        for cuts in [cuts, &byte_by_byte] {
            let cut = ours(bytes, cuts).await;
            if cut != whole {
                compared = Err(format!("cut at {cuts:?}: {cut:?}, but whole: {whole:?}"));
                return;
            }
        }
        let hypers = hypers(bytes, cuts).await;
        compared = compare(bytes, &whole, &hypers)
            .map_err(|why| format!("{why}\nours: {whole:?}\nhyper's: {hypers:?}"));
    });
    compared
}

#[test]
fn what_is_accepted_hyper_reads_alike() {
    let cuts = prop::collection::vec(any::<Index>(), 1..6);
    let found = RefCell::new(Vec::new());
    let tested = runner(2_500).run(&(conversation(), cuts), |(bytes, cuts)| -> TestCaseResult {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        match is_alike(&bytes, &cuts) {
            Ok(reason) => found.borrow_mut().extend(reason),
            Err(why) => return Err(TestCaseError::fail(format!("{}\n{why}", shown(&bytes)))),
        }
        Ok(())
    });
    if let Err(error) = tested {
        panic!("{error}");
    }
    let mut found = found.into_inner();
    found.sort_unstable();
    found.dedup();
    assert!(found.len() >= 8, "the conversations reach too little: {found:?}");
}

/// Splitting a conversation in two at any position gives the same result.
#[test]
fn a_cut_changes_nothing() {
    let mut runner = runner(0);
    for _ in 0..20 {
        let bytes = conversation().new_tree(&mut runner).unwrap().current();
        run(async {
            let whole = ours(&bytes, &[]).await;
            for cut in 1..bytes.len() {
                assert_eq!(ours(&bytes, &[cut]).await, whole, "{} at {cut}", shown(&bytes));
            }
        });
    }
}

/// Every reason occurs, and is found for its example.
#[test]
fn each_reason_has_an_example() {
    for (reason, example) in Reason::EXAMPLES {
        assert_eq!(is_alike(example, &[]), Ok(Some(*reason)), "{}", shown(example));
    }
}
