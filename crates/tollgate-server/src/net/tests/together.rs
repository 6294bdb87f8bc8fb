//! Answers of several HTTP/2 streams in one write.

use super::*;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A pipe that counts writes. Like a socket it takes several pieces in one write.
#[derive(Debug)]
pub(crate) struct CountedPipe {
    io: DuplexStream,
    writes: Rc<Cell<usize>>,
}

impl AsyncRead for CountedPipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl AsyncWrite for CountedPipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writes.set(self.writes.get() + 1);
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.writes.set(self.writes.get() + 1);
        Pin::new(&mut self.io).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

/// The kind and the flags of the next frame.
async fn frame(client: &mut DuplexStream) -> (u8, u8) {
    let mut head = [0; 9];
    client.read_exact(&mut head).await.unwrap();
    let mut rest = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
    client.read_exact(&mut rest).await.unwrap();
    (head[3], head[4])
}

#[test]
fn requests_that_come_together_are_answered_together() {
    run(async {
        let rig = Rig::new(Limits::default());
        let (mut client, io, place) = rig.place(64 * 1024);
        let writes = Rc::new(Cell::new(0));
        let counted = Transport::Counted(CountedPipe { io, writes: writes.clone() });
        tokio::task::spawn_local(serve_http(counted, PEER, rig.handler.clone(), place));
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        // Up to the acknowledgement of our settings.
        while frame(&mut client).await != (4, 1) {}
        let before = writes.get();
        let mut requests = Vec::new();
        for stream in (1_u32..20).step_by(2) {
            // GET, http, a path of 300 bytes, and x as the authority. The answer repeats the path.
            let mut head = vec![0x82, 0x86, 0x04, 0x7f, 0xad, 0x01];
            head.push(b'/');
            head.extend([b'p'; 299]);
            head.extend([0x41, 1, b'x']);
            requests.extend([0, (head.len() >> 8) as u8, head.len() as u8, 1, 5]);
            requests.extend(stream.to_be_bytes());
            requests.extend(head);
        }
        client.write_all(&requests).await.unwrap();
        let mut ended = 0;
        while ended < 10 {
            let (kind, flags) = frame(&mut client).await;
            ended += usize::from(kind == 0 && flags & 1 == 1);
        }
        assert_eq!(rig.handler.handled.get(), 10);
        assert_eq!(writes.get() - before, 1);
    });
}
