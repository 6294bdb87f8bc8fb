//! Bodies sent to peers that read slowly.

use super::super::BodyWriter;
use crate::{
    BoxError, ClientConnection, Handler, HttpResponse, Limits, Request, RequestBody, Upload,
    tests::rig::{Rig, answer, run},
};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::{Body, Frame};
use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Accepts a fixed number of bytes, then none until the next poll.
struct SlowWriter {
    room: usize,
    taken: Vec<u8>,
}

impl AsyncWrite for SlowWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let taken = bytes.len().min(std::mem::take(&mut self.room));
        self.taken.extend_from_slice(&bytes[..taken]);
        if taken == 0 { Poll::Pending } else { Poll::Ready(Ok(taken)) }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A body for a slow peer is not buffered as a whole.
#[test]
fn a_slow_peer_has_two_pieces_waiting_at_most() {
    let frames = (0..200).map(|_| Ok::<_, BoxError>(Frame::data(Bytes::from(vec![b'x'; 16_384]))));
    let mut body = Box::pin(StreamBody::new(stream::iter(frames)));
    let mut writer = BodyWriter::new(Vec::new(), false);
    let mut narrow = SlowWriter { room: 0, taken: Vec::new() };
    let mut context = Context::from_waker(Waker::noop());
    while !writer.is_over() {
        writer.fill(body.as_mut(), |_| {}, &mut context).unwrap();
        assert!(writer.held() <= 2 * 16_384, "{} bytes are held", writer.held());
        narrow.room = 10_000;
        let _ = writer.poll_write(&mut narrow, &mut context);
    }
    assert_eq!(narrow.taken.len(), 200 * 16_384);
}

/// Keeps the body of each request after its answer.
#[derive(Default)]
struct KeepsUploads(RefCell<Vec<Upload>>);

impl Handler for KeepsUploads {
    async fn handle(
        &self,
        request: Request<'_>,
        _: &Rc<ClientConnection>,
        answer: &mut HttpResponse,
    ) {
        if let RequestBody::Stream(upload) = request.body {
            self.0.borrow_mut().push(upload);
        }
        answer.body.extend_from_slice(b"kept");
    }
}

/// A body kept from an earlier request reads nothing of a later request.
#[test]
fn a_body_that_outlives_its_request_gets_nothing_of_the_next() {
    run(async {
        let (rig, keeps) = (Rig::new(Limits::default()), Rc::new(KeepsUploads::default()));
        let mut client = rig.connect_to(&keeps);
        let head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n";
        for _ in 0..2 {
            client.write_all(head).await.unwrap();
            assert_eq!(answer(&mut client).await.1, "kept");
            client.write_all(b"body").await.unwrap();
        }
        let mut first = keeps.0.borrow_mut().remove(0);
        assert!(!first.is_end_stream());
        let frame = poll_fn(|context| Pin::new(&mut first).poll_frame(context)).await;
        assert!(matches!(frame, Some(Err(_))), "{frame:?}");
    });
}
