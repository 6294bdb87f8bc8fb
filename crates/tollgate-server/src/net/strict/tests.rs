//! Every way of cutting the bytes gives the same requests.

use super::{Strict, Wire};
use std::rc::Rc;
use tokio::io::AsyncReadExt;

/// What the protocol gets to read of `bytes`, sent in pieces of `size`.
fn read(bytes: &[u8], size: usize) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut mock = bytes;
        let mut out = Vec::new();
        let mut strict = Strict::new(Pieces { rest: &mut mock, size }, Rc::<Wire>::default(), 1000);
        strict.read_to_end(&mut out).await.unwrap();
        out
    })
}

/// Gives its bytes a few at a time.
struct Pieces<'a, 'b> {
    rest: &'a mut &'b [u8],
    size: usize,
}

impl tokio::io::AsyncRead for Pieces<'_, '_> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        let taken = self.size.min(self.rest.len()).min(buffer.remaining());
        let (piece, rest) = self.rest.split_at(taken);
        buffer.put_slice(piece);
        *self.rest = rest;
        std::task::Poll::Ready(Ok(()))
    }
}

const GOOD: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
    b"\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n",
    b"G#T / HTTP/1.1\r\nhost: a\r\nx: #\r\n\r\n",
    b"POST / HTTP/1.1\r\ncontent-length: 4\r\n\r\n\n\n\n\nGET / HTTP/1.1\r\n\r\n",
    b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\nA;x=\"y\"\r\n0123456789\r\n00\r\nx: y\r\n\r\nGET / HTTP/1.1\r\n\r\n",
];

const BAD: &[&[u8]] = &[
    b"GET / HTTP/1.1\nhost: a\r\n\r\n",
    b"GET /a#b HTTP/1.1\r\nhost: a\r\n\r\n",
    b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\na",
    b"POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n\r\n\r\n",
    b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: y\n\r\n",
];

#[test]
fn what_has_one_meaning_passes_unchanged() {
    for bytes in GOOD {
        for size in 1..=bytes.len() {
            assert_eq!(read(bytes, size), *bytes, "by {size}");
        }
    }
}

#[test]
fn what_has_two_ends_with_nonsense() {
    for bytes in BAD {
        for size in 1..=bytes.len() {
            let got = read(bytes, size);
            let passed =
                got.strip_suffix(super::NONSENSE).unwrap_or_else(|| panic!("by {size}: {got:?}"));
            assert!(bytes.starts_with(passed) && passed.len() < bytes.len(), "by {size}");
        }
    }
}

/// A head without an end is the protocol's to refuse, and is not kept for ever.
#[test]
fn endless_heads_are_let_through_to_be_refused() {
    let bytes = [b"GET / HTTP/1.1\r\nx: ".as_slice(), &[b'x'; 3000]].concat();
    assert_eq!(read(&bytes, 100), bytes);
}

/// What has been read is not kept, though no piece ever ends with a request.
#[test]
fn what_was_given_is_gone() {
    let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let bytes = [b"GE", &request.repeat(1_000)[2..], b"GE"].concat();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut mock = &bytes[..];
        let pieces = Pieces { rest: &mut mock, size: request.len() + 1 };
        let mut strict = Strict::new(pieces, Rc::<Wire>::default(), 1000);
        let mut buffer = [0; 256];
        let mut all = 0;
        loop {
            let len = strict.read(&mut buffer).await.unwrap();
            all += len;
            assert!(
                strict.held.len() <= 2 * request.len() + 2,
                "{} after {all}",
                strict.held.len()
            );
            if len == 0 {
                break;
            }
        }
        assert_eq!((all, strict.left()), (bytes.len() - 2, &b"GE"[..]));
    });
}

/// Nothing after a request that may upgrade is read before that is settled.
#[test]
fn an_upgrade_holds_what_follows() {
    for (upgraded, expected) in [(true, &b"\0\n"[..]), (false, super::NONSENSE)] {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let bytes = b"GET / HTTP/1.1\r\nupgrade: x\r\n\r\n\0\n";
            let mut mock = &bytes[..];
            let wire = Rc::<Wire>::default();
            let pieces = Pieces { rest: &mut mock, size: 100 };
            let mut strict = Strict::new(pieces, wire.clone(), 1000);
            let mut head = vec![0; bytes.len()];
            let len = strict.read(&mut head).await.unwrap();
            assert_eq!(len, bytes.len() - 2);
            let mut rest = Vec::new();
            let reading = strict.read_to_end(&mut rest);
            let settling = async { wire.settle(upgraded) };
            let (read, ()) = tokio::join!(reading, settling);
            read.unwrap();
            assert_eq!(rest, expected);
        });
    }
}
