//! One connection, from its first byte to its last.

use super::{
    Handler, Limits, Response, Stats, Unread, figures,
    headless::{tell_length, wants_head},
    life::{Life, Order, Stage},
    plain,
    registry::Place,
    sniff::{Version, sniff},
    stream::Stream,
    streams::Streams,
};
use hyper::{
    StatusCode,
    body::Incoming,
    header::{CONNECTION, HeaderValue},
    rt::Executor,
    server::conn::{http1, http2},
    service::{HttpService, service_fn},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, net::SocketAddr, pin::Pin, rc::Rc};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tollgate_core::header::Problem;

/// What is said to a peer whose request never became one.
const TOO_SLOW: &str = "{\"type\":\"about:blank\",\"title\":\"Request Timeout\",\"status\":408,\
    \"detail\":\"the request's head took too long\",\"field\":\"head\"}";

/// The most header fields that hyper reads unless it is told otherwise.
pub(super) const HTTP1_FIELDS: usize = 100;

/// Serves a connection until either side ends it. Whatever goes wrong on it is its own affair and ends here.
pub(super) async fn serve<T, H>(io: T, peer: SocketAddr, handler: Rc<H>, place: Place)
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    H: Handler,
{
    let life = place.life.clone();
    let mut stream = Stream::new(io, life.clone());
    let version = {
        let mut sniffing = std::pin::pin!(sniff(&mut stream));
        life.until_closed(|context| sniffing.as_mut().poll(context)).await
    };
    if let Some(Ok(Version::Http1)) = version {
        match plain::serve(&mut stream, &*handler, &life).await {
            plain::End::Unusual => {}
            plain::End::Closed => return too_slow(stream, &life).await,
            plain::End::Done => return,
        }
    }
    let service = {
        let life = life.clone();
        service_fn(move |request| answer(handler.clone(), life.clone(), request, peer))
    };
    match version {
        Some(Ok(Version::Http1)) => serve_http1(stream, service, &life).await,
        Some(Ok(Version::Http2)) => serve_http2(stream.together(), service, &life).await,
        Some(Err(_)) => {}
        None => too_slow(stream, &life).await,
    }
}

/// Answers one request.
async fn answer<H: Handler>(
    handler: Rc<H>,
    life: Rc<Life>,
    request: hyper::Request<Incoming>,
    peer: SocketAddr,
) -> Result<Response, Infallible> {
    let under_way = UnderWay::new(&life);
    if request.headers().len() > life.front.limits.fields_max {
        // As HTTP/1 says it before a request gets here.
        let mut response = Response::new(super::Body::default());
        *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Ok(response);
    }
    let is_headless = wants_head(&request);
    let request = request.map(|incoming| Unread { incoming, life: life.clone() });
    let mut response = handler.handle(request, peer).await;
    if is_headless {
        tell_length(&mut response);
        *response.body_mut() = super::Body::default();
    }
    figures::keep_out(response.headers_mut(), &life);
    if under_way.0.order() != Order::Serve {
        // HTTP/2 says so in another way, and drops the field.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// A request that has no answer yet.
pub(super) struct UnderWay<'a>(&'a Life);

impl<'a> UnderWay<'a> {
    pub(super) fn new(life: &'a Life) -> Self {
        life.begin();
        Self(life)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.finish();
        if std::thread::panicking() {
            Stats::add(&self.0.front.stats.panics);
        }
    }
}

async fn serve_http1<T, S>(stream: Stream<T>, service: S, life: &Life)
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    S: HttpService<Incoming, ResBody = super::Body, Error = Infallible>,
{
    let limits = &life.front.limits;
    // Not `pipeline_flush`: with it, an answer to a head that cannot be read stays in its buffer.
    let mut builder = http1::Builder::new();
    builder
        .half_close(true)
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes_max.max(8192))
        .max_header_size(limits.head_bytes_max)
        // Answers are small: one copy is cheaper than a list of pieces.
        .writev(false);
    // Saying what hyper does anyway makes it clear a table for each request.
    if limits.fields_max != HTTP1_FIELDS {
        builder.max_headers(limits.fields_max);
    }
    let mut connection = builder.serve_connection(TokioIo::new(stream), service);
    let ended = life.until_closed(|context| Pin::new(&mut connection).poll(context)).await;
    if ended.is_none() {
        too_slow(connection.into_parts().io.into_inner(), life).await;
    }
}

/// Ends a connection on which only part of a head has come. One on which nothing has come, or not even the last answer
/// has been read, ends without a word.
pub(super) async fn too_slow<T: AsyncRead + AsyncWrite + Unpin>(
    mut stream: Stream<T>,
    life: &Life,
) {
    if life.stage() != Stage::Head || stream.is_stuck() {
        return;
    }
    life.last_words();
    let answer = format!(
        "HTTP/1.1 408 Request Timeout\r\ncontent-type: {}\r\ncache-control: no-store\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{TOO_SLOW}",
        Problem::MEDIA_TYPE,
        TOO_SLOW.len()
    );
    let mut saying = std::pin::pin!(async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    });
    life.until_closed(|context| saying.as_mut().poll(context)).await;
}

pub(super) async fn serve_http2<T, S, B>(stream: Stream<T>, service: S, life: &Life)
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    S: HttpService<Incoming, ResBody = B, Error = Infallible>,
    S::Future: 'static,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    life.share();
    let Limits {
        head_bytes_max,
        streams_max,
        resets_max,
        window_bytes,
        ping_every,
        ping_within,
        ..
    } = life.front.limits;
    let streams = Streams::default();
    let mut builder = http2::Builder::new(streams.clone());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(streams_max)
        .initial_stream_window_size(window_bytes)
        .initial_connection_window_size(window_bytes)
        .max_pending_accept_reset_streams(resets_max)
        .max_send_buf_size(window_bytes as usize)
        .max_header_list_size(u32::try_from(head_bytes_max).unwrap_or(u32::MAX))
        .keep_alive_interval(ping_every)
        .keep_alive_timeout(ping_within);
    let mut connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut finishing = false;
    life.until_closed(|context| {
        // Also where the connection ends at once: whoever is about to ask on it then knows that nothing was begun.
        if life.order() != Order::Serve && !finishing {
            finishing = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        loop {
            let polled = Pin::new(&mut connection).poll(context);
            // What they have to say is written when the connection is polled again, all of it together.
            if polled.is_ready() || !streams.begin() {
                return polled;
            }
        }
    })
    .await;
}

/// Runs HTTP/2 streams, which the protocol wants to run by themselves, on the worker that they came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Local;

impl<F: Future<Output = ()> + 'static> Executor<F> for Local {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(stream);
    }
}
