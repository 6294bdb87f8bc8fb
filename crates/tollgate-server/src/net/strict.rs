//! HTTP/1 with one meaning: bytes reach the protocol only when nobody could read them in another way.
//!
//! A request that two servers delimit differently is how one client speaks in the name of another. So everything that
//! says where a request ends is looked at before hyper is: lines end with CR LF and are not folded, there is at most one
//! length, never beside a transfer coding, which is `chunked` and nothing else. What comes after a request that may
//! upgrade its connection is not read at all until that is settled. Where a rule is broken, the protocol gets a byte that
//! no request can contain: it answers 400 after all earlier answers, and closes.

mod back;
mod chunks;
mod head;
#[cfg(test)]
mod tests;

use super::life::Life;
pub(super) use back::Back;
use chunks::Chunks;
use head::{Head, Next};
use std::{
    cell::{Cell, RefCell},
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What makes hyper answer 400 and close.
const NONSENSE: &[u8] = b"\0\r\n\r\n";
/// What is read at once while part of a head is kept back.
const MORE_BYTES: usize = 2048;

/// A stream that is read as above.
#[derive(Debug)]
pub(super) struct Strict<T> {
    inner: T,
    vetting: Vetting,
    /// Bytes that have come; those before `vetted` may be read, and those before `given` have been.
    held: Vec<u8>,
    vetted: usize,
    given: usize,
    back: Option<Back>,
    /// Whether the protocol has been told that it ends here.
    is_over: bool,
}

/// Whether the connection changed its protocol: told by whoever answers, heeded by the stream.
#[derive(Debug, Default)]
pub(super) struct Wire {
    turn: Cell<Turn>,
    waker: RefCell<Option<Waker>>,
    /// Is told whether part of a head is kept back here, where nobody else sees it.
    life: Option<Rc<Life>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    Undecided,
    /// The next request follows.
    Http,
    /// Anything follows.
    Other,
}

impl Wire {
    pub(super) fn new(life: Rc<Life>) -> Self {
        Self { life: Some(life), ..Self::default() }
    }

    fn set_early(&self, early: bool) {
        if let Some(life) = &self.life {
            life.set_early(early);
        }
    }

    /// Says how the connection goes on after a request that might have upgraded it.
    pub(super) fn settle(&self, upgraded: bool) {
        self.turn.set(if upgraded { Turn::Other } else { Turn::Http });
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn poll_turn(&self, context: &Context<'_>) -> Poll<Turn> {
        match self.turn.get() {
            Turn::Undecided => {
                self.waker.replace(Some(context.waker().clone()));
                Poll::Pending
            }
            settled => Poll::Ready(settled),
        }
    }
}

/// Where in the sequence of requests the bytes are.
#[derive(Debug)]
enum State {
    Head(Head),
    Body {
        left: u64,
        upgrade: bool,
    },
    Chunked {
        chunks: Chunks,
        upgrade: bool,
    },
    /// After a request that may upgrade.
    Held,
    /// Not ours to judge: another protocol, or a head that is refused for its size.
    Open,
    /// A rule has been broken.
    Refused,
}

#[derive(Debug)]
struct Vetting {
    state: State,
    wire: Rc<Wire>,
    head_bytes_max: usize,
    /// How many heads have been read.
    heads: u32,
}

/// A rule has been broken.
#[derive(Debug, PartialEq, Eq)]
struct Broken;

/// Whether some bytes begin with the head of a request whose end it tells, and that perhaps another protocol does not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    /// A head of this length, with which no rule is broken, and a body of that.
    Sized { head: usize, body: u64 },
    /// So far, but the head has no end yet.
    Part,
    /// No.
    Other,
}

pub(super) fn begins(bytes: &[u8]) -> Begins {
    match Head::default().read(bytes) {
        Ok(Some((head, Next { body, upgrade: false }))) => match body {
            head::Body::None => Begins::Sized { head, body: 0 },
            head::Body::Length(body) => Begins::Sized { head, body },
            head::Body::Chunked => Begins::Other,
        },
        Ok(None) => Begins::Part,
        Ok(Some(_)) | Err(Broken) => Begins::Other,
    }
}

impl Vetting {
    /// How many of these bytes may be read now. The rest is part of a head, or waits for an upgrade to be settled.
    fn vet(&mut self, bytes: &[u8]) -> Result<usize, (usize, Broken)> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match &mut self.state {
                State::Head(head) => match head.read(rest) {
                    Ok(Some((len, next))) => {
                        at += len;
                        self.heads = self.heads.wrapping_add(1);
                        self.wire.set_early(false);
                        self.state = self.after_head(next);
                    }
                    Ok(None) if rest.len() > self.head_bytes_max => self.state = State::Open,
                    Ok(None) => {
                        // Lines that are empty may belong to what came before.
                        self.wire.set_early(rest.iter().any(|byte| !b"\r\n".contains(byte)));
                        return Ok(at);
                    }
                    Err(broken) => return Err((at, broken)),
                },
                State::Body { left, upgrade } => {
                    let taken = (*left).min(rest.len() as u64);
                    *left -= taken;
                    at += usize::try_from(taken).unwrap_or(rest.len());
                    if *left == 0 {
                        self.state = after_body(*upgrade);
                    }
                }
                State::Chunked { chunks, upgrade } => match chunks.read(rest) {
                    Ok((len, true)) => {
                        at += len;
                        self.state = after_body(*upgrade);
                    }
                    Ok((len, false)) => at += len,
                    Err(broken) => return Err((at, broken)),
                },
                State::Held => return Ok(at),
                State::Open | State::Refused => at = bytes.len(),
            }
        }
        Ok(at)
    }

    fn after_head(&self, Next { body, upgrade }: Next) -> State {
        if upgrade {
            self.wire.turn.set(Turn::Undecided);
        }
        match body {
            head::Body::None => after_body(upgrade),
            head::Body::Length(left) => State::Body { left, upgrade },
            head::Body::Chunked => State::Chunked { chunks: Chunks::default(), upgrade },
        }
    }
}

fn after_body(upgrade: bool) -> State {
    if upgrade { State::Held } else { State::Head(Head::default()) }
}

impl<T> Strict<T> {
    pub(super) fn new(inner: T, wire: Rc<Wire>, head_bytes_max: usize) -> Self {
        let state = State::Head(Head::default());
        let vetting = Vetting { state, wire, head_bytes_max, heads: 0 };
        let (back, is_over) = (None, false);
        Self { inner, vetting, held: Vec::new(), vetted: 0, given: 0, back, is_over }
    }

    /// Has the protocol end where [`Back`] says.
    pub(super) fn until(self, back: Back) -> Self {
        Self { back: Some(back), ..self }
    }

    /// Whether the protocol has been told to end before its client did. What is [left](Self::left) are requests.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn into_inner(self) -> T {
        self.inner
    }

    /// Bytes that have come and were not read; those of another protocol after an upgrade.
    pub(super) fn left(&self) -> &[u8] {
        &self.held[self.given..]
    }

    fn refuse(&mut self) {
        self.vetting.state = State::Refused;
        self.held.truncate(self.vetted);
        self.held.extend_from_slice(NONSENSE);
        self.vetted = self.held.len();
    }

    /// Vets what is held beyond what has been vetted.
    fn vet_held(&mut self) {
        match self.vetting.vet(&self.held[self.vetted..]) {
            Ok(len) => self.vetted += len,
            Err((len, Broken)) => {
                self.vetted += len;
                self.refuse();
            }
        }
    }

    /// Hands out what is held and may be read.
    fn give(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let ready = &self.held[self.given..self.vetted];
        let taken = ready.len().min(buffer.remaining());
        buffer.put_slice(&ready[..taken]);
        self.back.iter_mut().for_each(Back::given);
        self.given += taken;
        if self.given == self.held.len() {
            self.held = Vec::new();
            (self.given, self.vetted) = (0, 0);
        } else if self.given == self.vetted {
            // Or else a client whose pieces always end within a head would have all of them kept.
            self.held.drain(..self.given);
            (self.given, self.vetted) = (0, 0);
        }
        taken > 0
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Strict<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if self.is_over {
                return Poll::Ready(Ok(()));
            }
            if self.given < self.vetted && self.give(buffer) {
                return Poll::Ready(Ok(()));
            }
            match self.vetting.state {
                State::Held => {
                    self.vetting.state = match ready!(self.vetting.wire.poll_turn(context)) {
                        Turn::Other => State::Open,
                        _ => State::Head(Head::default()),
                    };
                    self.vet_held();
                    continue;
                }
                State::Refused => return Poll::Ready(Ok(())),
                _ => {}
            }
            if self.held.is_empty() {
                let before = buffer.filled().len();
                ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
                let new = &buffer.filled()[before..];
                if new.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                // With nothing kept back, a head begins with these bytes.
                if matches!(self.vetting.state, State::Head(_))
                    && self.back.as_ref().is_some_and(|back| back.is_before(new))
                {
                    self.held = new.to_vec();
                    self.is_over = true;
                    buffer.set_filled(before);
                    return Poll::Ready(Ok(()));
                }
                self.back.iter_mut().for_each(Back::given);
                let (len, broken) = match self.vetting.vet(new) {
                    Ok(len) => (len, false),
                    Err((len, Broken)) => (len, true),
                };
                if len < new.len() || broken {
                    let rest = new[len..].to_vec();
                    buffer.set_filled(before + len);
                    self.held = rest;
                    if broken {
                        self.refuse();
                    }
                }
                if len > 0 {
                    return Poll::Ready(Ok(()));
                }
                continue;
            }
            let mut more = [0; MORE_BYTES];
            let mut read = ReadBuf::new(&mut more);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                // The protocol knows what an end within a head means.
                return Poll::Ready(Ok(()));
            }
            self.held.extend_from_slice(read.filled());
            self.vet_held();
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Strict<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_flush(context))?;
        let heads = self.vetting.heads;
        self.back.iter_mut().for_each(|back| back.flushed(heads));
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
