//! A body on its way to a peer: pieces in, bytes out.

use super::{push_chunk, push_trailers};
use bytes::Bytes;
use hyper::{
    HeaderMap,
    body::{Body, Frame},
};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::AsyncWrite;

/// Bytes that are collected before they are written.
const OUTPUT_BYTES: usize = 16 * 1024;

/// Writes a body as it comes, with or without chunks. It holds two pieces of the body at most.
#[derive(Debug)]
pub(crate) struct BodyWriter {
    output: Vec<u8>,
    /// How much of the output has been written.
    written: usize,
    in_chunks: bool,
    has_ended: bool,
    is_flushed: bool,
    /// All bytes that have been written.
    progress: u64,
}

impl BodyWriter {
    /// After these bytes, which have not been written.
    pub(crate) fn new(output: Vec<u8>, in_chunks: bool) -> Self {
        Self { output, written: 0, in_chunks, has_ended: false, is_flushed: false, progress: 0 }
    }

    /// Whether all of the body has been written.
    pub(crate) fn is_over(&self) -> bool {
        self.has_ended && self.is_flushed
    }

    /// Whether something is left to be written.
    pub(crate) fn has_unsent(&self) -> bool {
        self.written < self.output.len() || self.has_ended && !self.is_flushed
    }

    /// How many bytes are held.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.output.len()
    }

    /// How many bytes have been written.
    pub(crate) fn progress(&self) -> u64 {
        self.progress
    }

    /// The memory, for another body.
    pub(crate) fn into_output(mut self) -> Vec<u8> {
        self.output.clear();
        self.output
    }

    /// Takes pieces of the body for as long as there are some and there is room. `true`: the body
    /// has to be waited for.
    ///
    /// # Errors
    ///
    /// When the body breaks off.
    pub(crate) fn fill<B: Body<Data = Bytes> + ?Sized>(
        &mut self,
        mut body: Pin<&mut B>,
        trailers: impl Fn(&mut HeaderMap),
        context: &mut Context<'_>,
    ) -> Result<bool, B::Error> {
        // A peer that takes less than there is must not have all of it collected here.
        self.output.drain(..self.written);
        self.written = 0;
        while !self.has_ended && self.output.len() < OUTPUT_BYTES {
            match body.as_mut().poll_frame(context) {
                Poll::Ready(Some(frame)) => self.push(frame?, &trailers),
                Poll::Ready(None) => self.end(&HeaderMap::new()),
                Poll::Pending => return Ok(true),
            }
            if !self.has_ended && body.is_end_stream() {
                self.end(&HeaderMap::new());
            }
        }
        Ok(false)
    }

    /// Writes what has been taken.
    pub(crate) fn poll_write(
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
        // TLS may still hold encrypted bytes in a buffer.
        let flushed = Pin::new(stream).poll_flush(context);
        self.is_flushed = matches!(flushed, Poll::Ready(Ok(())));
        flushed
    }

    fn push(&mut self, frame: Frame<Bytes>, settle: impl Fn(&mut HeaderMap)) {
        match frame.into_data() {
            Ok(data) if data.is_empty() => {}
            Ok(data) if self.in_chunks => push_chunk(&data, &mut self.output),
            Ok(data) => self.output.extend_from_slice(&data),
            Err(frame) => {
                if let Ok(mut trailers) = frame.into_trailers() {
                    settle(&mut trailers);
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
