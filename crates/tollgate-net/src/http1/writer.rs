//! Writes a body to a peer piece by piece.

use super::{push_chunk, push_trailers};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame};
use std::task::{Context, Poll, ready};
use std::{io, pin::Pin};
use tokio::io::AsyncWrite;

/// Limit of bytes collected before a write.
const OUTPUT_BYTES: usize = 16 * 1024;

/// Writes a body as its pieces arrive, chunked or not. Holds at most two pieces.
#[derive(Debug)]
pub struct BodyWriter {
    output: Vec<u8>,
    /// Bytes of the output already written.
    written: usize,
    in_chunks: bool,
    has_ended: bool,
    is_flushed: bool,
    /// Bytes written in total.
    progress: u64,
}

impl BodyWriter {
    /// Creates a writer that sends `output` first.
    pub fn new(output: Vec<u8>, in_chunks: bool) -> Self {
        Self { output, written: 0, in_chunks, has_ended: false, is_flushed: false, progress: 0 }
    }

    /// Whether the whole body is written.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.has_ended && self.is_flushed
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.written < self.output.len() || self.has_ended && !self.is_flushed
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.output.len()
    }

    pub(crate) fn progress(&self) -> u64 {
        self.progress
    }

    /// Returns the buffer, for another body.
    pub(crate) fn into_output(mut self) -> Vec<u8> {
        self.output.clear();
        self.output
    }

    /// Collects pieces of the body while they arrive and there is room. `true`: the body is
    /// pending. `edit` may change the trailers.
    pub fn fill<B: Body<Data = Bytes> + ?Sized>(
        &mut self,
        mut body: Pin<&mut B>,
        edit: impl Fn(&mut HeaderMap),
        context: &mut Context<'_>,
    ) -> Result<bool, B::Error> {
        // Otherwise the whole body would be buffered here for a slow peer.
        self.output.drain(..self.written);
        self.written = 0;
        while !self.has_ended && self.output.len() < OUTPUT_BYTES {
            match body.as_mut().poll_frame(context) {
                Poll::Ready(Some(frame)) => self.push(frame?, &edit),
                Poll::Ready(None) => self.end(&HeaderMap::new()),
                Poll::Pending => return Ok(true),
            }
            if !self.has_ended && body.is_end_stream() {
                self.end(&HeaderMap::new());
            }
        }
        Ok(false)
    }

    /// Writes the collected bytes.
    pub fn poll_write(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.written < self.output.len() {
            let rest = &self.output[self.written..];
            match ready!(Pin::new(&mut *stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => {
                    self.written += more;
                    self.progress += more as u64;
                }
            }
        }
        self.output.clear();
        self.written = 0;
        // TLS may still hold encrypted bytes in its buffer.
        let flushed = Pin::new(stream).poll_flush(context);
        self.is_flushed = matches!(flushed, Poll::Ready(Ok(())));
        flushed
    }

    fn push(&mut self, frame: Frame<Bytes>, edit: impl Fn(&mut HeaderMap)) {
        match frame.into_data() {
            Ok(data) if data.is_empty() => {}
            Ok(data) if self.in_chunks => push_chunk(&data, &mut self.output),
            Ok(data) => self.output.extend_from_slice(&data),
            Err(frame) => {
                if let Ok(mut trailers) = frame.into_trailers() {
                    edit(&mut trailers);
                    self.end(&trailers);
                }
            }
        }
    }

    fn end(&mut self, trailers: &HeaderMap) {
        (self.has_ended, self.is_flushed) = (true, false);
        if self.in_chunks {
            push_trailers(trailers, &mut self.output);
        }
    }
}
