//! The upstream: records requests, and answers as planned.

use super::{
    MessageReader, PlainMessage,
    generate::{AnswerKind, Pipeline, PlannedAnswer, PlannedBody, PlannedRequest, chunks, cut},
};
use std::{cell::RefCell, rc::Rc, time::Duration};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};

/// A request as received by the upstream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReceivedRequest {
    line: String,
    body: Vec<u8>,
    trailers: String,
}

impl ReceivedRequest {
    /// The expected form of a request at the upstream.
    pub(super) fn expected(pipeline: &Pipeline, id: usize) -> Self {
        let exchange = &pipeline.exchanges[id];
        let has_trailers = matches!(exchange.asked, PlannedBody::Chunks { has_trailers: true, .. })
            && pipeline.version(id) == "1.1";
        Self {
            line: format!("{} /{id} HTTP/1.1", exchange.method).to_ascii_lowercase(),
            body: exchange.asked.data(id),
            trailers: if has_trailers { format!("x-t: {id}\r\n") } else { String::new() },
        }
    }
}

/// Serves connections until the test ends.
pub(super) async fn serve(
    listener: TcpListener,
    pipeline: Rc<Pipeline>,
    log: Rc<RefCell<Vec<ReceivedRequest>>>,
) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::task::spawn_local(serve_connection(stream, pipeline.clone(), log.clone()));
    }
}

async fn serve_connection(
    stream: TcpStream,
    pipeline: Rc<Pipeline>,
    log: Rc<RefCell<Vec<ReceivedRequest>>>,
) {
    let (reading, mut writing) = stream.into_split();
    let mut reader = MessageReader::new(reading);
    while let Some(mut message) = reader.head().await {
        reader.body(&mut message, false).await;
        let PlainMessage { head, body, trailers } = message;
        let line = head.split("\r\n").next().unwrap().to_owned();
        let id: usize = line.split(['/', ' ']).nth(2).unwrap().parse().expect("a number");
        log.borrow_mut().push(ReceivedRequest { line, body, trailers });
        let exchange = &pipeline.exchanges[id];
        let (bytes, goes_on) = written(id, exchange);
        let mut is_first = true;
        for piece in cut(&bytes, &exchange.answered.cuts) {
            if !std::mem::take(&mut is_first) {
                // The pause makes the gateway see the pieces one by one.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            writing.write_all(&piece).await.unwrap();
        }
        if !goes_on {
            return;
        }
    }
}

/// The bytes of an answer, and whether the connection stays open.
fn written(id: usize, exchange: &PlannedRequest) -> (Vec<u8>, bool) {
    let PlannedAnswer { kind, interim, .. } = &exchange.answered;
    let mut out = Vec::new();
    for code in interim {
        out.extend_from_slice(
            format!("HTTP/1.1 {code} Wait\r\nx-interim: {id}\r\n\r\n").as_bytes(),
        );
    }
    let data = exchange.answered.data(id);
    let length = data.len();
    let (version, framing, mut body) = match kind {
        AnswerKind::Length => ("1.1", format!("Content-Length: {length}\r\n"), data),
        AnswerKind::LengthThenClose => {
            ("1.1", format!("Connection: close\r\nContent-Length: {length}\r\n"), data)
        }
        AnswerKind::Chunks { sizes, extension, has_trailers } => {
            let trailers = if *has_trailers { format!("X-T: {id}\r\n") } else { String::new() };
            let body = chunks(&data, sizes, extension, &trailers);
            ("1.1", "Transfer-Encoding: chunked\r\n".into(), body)
        }
        AnswerKind::UntilClose => ("1.1", "Connection: close\r\n".into(), data),
        AnswerKind::Http10 => ("1.0", String::new(), data),
        AnswerKind::Http10KeepAlive => {
            ("1.0", format!("Connection: keep-alive\r\nContent-Length: {length}\r\n"), data)
        }
        AnswerKind::Bodiless(_, None) => ("1.1", String::new(), data),
        AnswerKind::Bodiless(_, Some(length)) => {
            ("1.1", format!("Content-Length: {length}\r\n"), data)
        }
    };
    if !exchange.has_answer_body() {
        body.clear();
    }
    let status = kind.status();
    out.extend_from_slice(
        format!("HTTP/{version} {status} Sure\r\nx-id: {id}\r\n{framing}\r\n").as_bytes(),
    );
    out.extend_from_slice(&body);
    (
        out,
        !matches!(kind, AnswerKind::LengthThenClose | AnswerKind::UntilClose | AnswerKind::Http10),
    )
}
