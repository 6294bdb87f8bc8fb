//! The short way through HTTP/1.1, for requests as most clients of a decision service send them: a `POST` that came
//! whole, with nothing in its head that changes how the connection goes on.
//!
//! Such a request is answered from the bytes that were read into the bytes that are written, without the maps between.
//! Whatever is not plain in every respect, mistakes included, goes to the full protocol with all of its bytes, and the
//! connection stays there. So nothing is refused here, and nothing waits here but for a next request: a head or a
//! body that comes in pieces is the full protocol's.

use super::{
    Handler,
    connection::UnderWay,
    life::{Life, Order},
    stream::Stream,
};
use std::{
    future::poll_fn,
    io,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll},
    thread::LocalKey,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tollgate::Spares;

/// What is read at once. A request that is larger is not plain.
const INPUT_BYTES: usize = 8 * 1024;
/// More fields than a plain head has.
const FIELDS_MAX: usize = 24;
/// Answers to requests that came together are sent together, up to here.
const OUTPUT_BYTES: usize = 16 * 1024;

/// A `POST` of which everything is there.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Plain<'a> {
    /// The target, as sent.
    pub path: &'a str,
    /// `Content-Type`, as sent.
    pub content_type: &'a [u8],
    /// The whole body.
    pub body: &'a [u8],
}

/// What a handler answers to a plain request. The length, and whether the connection goes on, are not its business.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PlainAnswer {
    /// 200, 429 or 503.
    pub status: u16,
    /// Lines with a name and a value, each ended: `ratelimit: "a";r=1\r\n`. `Date` is among them.
    pub fields: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

/// Memory that only connections with something to do need. Each thread has as many as wait for something at once.
struct Scratch {
    input: Box<[u8]>,
    answer: PlainAnswer,
    output: Vec<u8>,
}

thread_local! {
    static SCRATCH: Spares<Scratch> = const { Spares::new() };
}

impl Default for Scratch {
    fn default() -> Self {
        let input = vec![0; INPUT_BYTES].into();
        Self { input, answer: PlainAnswer::default(), output: Vec::new() }
    }
}

/// How the short way ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Something is left to be read that is for the full protocol.
    Unusual,
    /// The connection has been told to close.
    Closed,
    /// There is nothing more to say or to hear.
    Done,
}

/// Answers requests for as long as they are plain.
pub(super) async fn serve<T, H>(stream: &mut Stream<T>, handler: &H, life: &Life) -> End
where
    T: AsyncRead + AsyncWrite + Unpin,
    H: Handler,
{
    loop {
        let next = life.until_closed(|context| {
            poll_next(stream, context, &SCRATCH, |scratch| &mut scratch.input)
        });
        let (mut scratch, len) = match next.await {
            Some(Ok((_, 0))) | Some(Err(_)) => return finish(stream, life).await,
            Some(Ok(next)) => next,
            None => return End::Closed,
        };
        let end = answer_all(stream, handler, life, &mut scratch, len).await;
        SCRATCH.with(|spares| spares.put(scratch));
        match end {
            None => {}
            Some(End::Done) => return finish(stream, life).await,
            Some(end) => return end,
        }
    }
}

/// What has come, in memory that is taken only once something has.
pub(super) fn poll_next<T: AsyncRead + Unpin, S: Default>(
    stream: &mut Stream<T>,
    context: &mut Context<'_>,
    spares: &'static LocalKey<Spares<S>>,
    input: impl FnOnce(&mut S) -> &mut [u8],
) -> Poll<io::Result<(Box<S>, usize)>> {
    let mut scratch = spares.with(Spares::take);
    let mut buffer = ReadBuf::new(input(&mut scratch));
    match Pin::new(stream).poll_read(context, &mut buffer) {
        Poll::Ready(read) => {
            let len = buffer.filled().len();
            Poll::Ready(read.map(|()| (scratch, len)))
        }
        Poll::Pending => {
            spares.with(|spares| spares.put(scratch));
            Poll::Pending
        }
    }
}

/// Answers all requests that have come. `None`: and nothing else has.
async fn answer_all<T, H>(
    stream: &mut Stream<T>,
    handler: &H,
    life: &Life,
    scratch: &mut Scratch,
    mut len: usize,
) -> Option<End>
where
    T: AsyncRead + AsyncWrite + Unpin,
    H: Handler,
{
    let Scratch { input, answer, output } = scratch;
    output.clear();
    let mut at = 0;
    let mut end = None;
    while at < len && end.is_none() {
        match find(&input[at..len]) {
            Found::Whole(request, size) => {
                let under_way = UnderWay::new(life);
                answer.fields.clear();
                answer.body.clear();
                // A connection that is to end soon says so in its answers, which is the full protocol's way to end it.
                if life.order() != Order::Serve || !handler.plain(request, answer).await {
                    end = Some(End::Unusual);
                    continue;
                }
                drop(under_way);
                at += size;
                let last = life.order() != Order::Serve;
                write(output, answer, last);
                end = last.then_some(End::Done);
                if output.len() > OUTPUT_BYTES && end.is_none() {
                    end = send(stream, life, output).await;
                }
            }
            Found::Part => match more(stream, &mut input[len..]).await {
                0 => end = Some(End::Unusual),
                read => len += read,
            },
            Found::Unusual => end = Some(End::Unusual),
        }
    }
    if matches!(end, None | Some(End::Unusual | End::Done))
        && let Some(failed) = send(stream, life, output).await
    {
        return Some(failed);
    }
    if end == Some(End::Unusual) {
        stream.unread(&input[at..len]);
        // What is left is part of a request, so the connection is not idle.
        life.received();
    }
    end
}

/// Reads what has come already, if anything.
pub(super) async fn more<T: AsyncRead + Unpin>(stream: &mut Stream<T>, room: &mut [u8]) -> usize {
    if room.is_empty() {
        return 0;
    }
    let mut buffer = ReadBuf::new(room);
    poll_fn(|context| {
        // An error or an end comes again for whoever reads next.
        let _ = Pin::new(&mut *stream).poll_read(context, &mut buffer);
        Poll::Ready(buffer.filled().len())
    })
    .await
}

/// Sends the answers, and forgets them. `None`: all of them.
pub(super) async fn send<T>(
    stream: &mut Stream<T>,
    life: &Life,
    output: &mut Vec<u8>,
) -> Option<End>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let sent = {
        let mut sending = std::pin::pin!(async {
            stream.write_all(output).await?;
            // What is encrypted may still lie here.
            stream.flush().await
        });
        life.until_closed(|context| sending.as_mut().poll(context)).await
    };
    output.clear();
    match sent {
        Some(Ok(())) => None,
        Some(Err(_)) => Some(End::Done),
        None => Some(End::Closed),
    }
}

/// Ends the connection from this side, and waits for the other.
pub(super) async fn finish<T>(stream: &mut Stream<T>, life: &Life) -> End
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let ended: Option<io::Result<()>> = {
        let mut ending = std::pin::pin!(stream.shutdown());
        life.until_closed(|context| ending.as_mut().poll(context)).await
    };
    match ended {
        Some(_) => End::Done,
        None => End::Closed,
    }
}

fn write(output: &mut Vec<u8>, answer: &PlainAnswer, last: bool) {
    output.extend_from_slice(match answer.status {
        200 => b"HTTP/1.1 200 OK\r\n".as_slice(),
        429 => b"HTTP/1.1 429 Too Many Requests\r\n".as_slice(),
        _ => b"HTTP/1.1 503 Service Unavailable\r\n".as_slice(),
    });
    output.extend_from_slice(&answer.fields);
    if last {
        output.extend_from_slice(b"connection: close\r\n");
    }
    output.extend_from_slice(b"content-length: ");
    let mut digits = [0; 20];
    let (mut first, mut rest) = (digits.len(), answer.body.len());
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    output.extend_from_slice(&digits[first..]);
    output.extend_from_slice(b"\r\n\r\n");
    output.extend_from_slice(&answer.body);
}

/// What some bytes begin with.
#[derive(Debug)]
enum Found<'a> {
    /// A plain request, this long.
    Whole(Plain<'a>, usize),
    /// Perhaps one.
    Part,
    /// Something else.
    Unusual,
}

fn find(bytes: &[u8]) -> Found<'_> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut []);
    let size = match head.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) => return Found::Part,
        Err(_) => return Found::Unusual,
    };
    let (Some("POST"), Some(path), Some(1)) = (head.method, head.path, head.version) else {
        return Found::Unusual;
    };
    let Some(Means { hosts: 1, length: Some(length), content_type: Some(content_type) }) =
        means(head.headers)
    else {
        return Found::Unusual;
    };
    match bytes.get(size..).and_then(|rest| rest.get(..length)) {
        Some(body) => Found::Whole(Plain { path, content_type, body }, size + length),
        None => Found::Part,
    }
}

/// What a plain head says.
#[derive(Default)]
struct Means<'a> {
    hosts: usize,
    length: Option<usize>,
    content_type: Option<&'a [u8]>,
}

/// `None` where a field says how the connection goes on, how the body comes, or the same thing twice.
fn means<'a>(fields: &[httparse::Header<'a>]) -> Option<Means<'a>> {
    let mut means = Means::default();
    for httparse::Header { name, value } in fields {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            4 if is("host") => means.hosts += 1,
            14 if is("content-length") => {
                let length = decimal(value).filter(|_| means.length.is_none())?;
                means.length = Some(length);
            }
            12 if is("content-type") => {
                means.content_type.is_none().then_some(())?;
                means.content_type = Some(value);
            }
            10 if is("connection") => {
                value.eq_ignore_ascii_case(b"keep-alive").then_some(())?;
            }
            2 if is("te") => return None,
            6 if is("expect") || is("origin") => return None,
            7 if is("upgrade") || is("trailer") => return None,
            16 if is("proxy-connection") || is("content-encoding") => return None,
            17 if is("transfer-encoding") => return None,
            _ => {}
        }
    }
    Some(means)
}

/// A length of a few digits; a body of more than that is not here yet anyway.
fn decimal(digits: &[u8]) -> Option<usize> {
    let plain = (1..=5).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    plain.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0')))
}

#[cfg(test)]
mod tests;
