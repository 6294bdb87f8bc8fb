//! The upstream of the gateways: a bare server on one current-thread runtime. It finds the ends of
//! requests, and answers each complete request with thirteen bytes. `/large` gets more than a
//! connection's buffers hold, `/chunked` 1 KiB in chunks, and `/tokens` some JSON. A `POST` to
//! `/items` gets 1 KiB, and a `DELETE` no body.

use std::error::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 13\r\n\r\nHello, world!";
const TOKENS: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 36\r\n\r\n\
    {\"usage\":{\"total_tokens\":5},\"a\":[1]}";
const LARGE_BYTES: usize = 16 << 20;
static PIECE: [u8; 16 * 1024] = [b'x'; 16 * 1024];
const INPUT_BYTES: usize = 16 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        eprintln!("listening http {}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(serve(stream));
        }
    })
}

/// Serves until the connection breaks; the gateway handles that.
async fn serve(mut stream: TcpStream) -> Option<()> {
    let (mut input, mut len, mut output) = (vec![0; INPUT_BYTES], 0, Vec::new());
    loop {
        len += stream.read(input.get_mut(len..)?).await.ok().filter(|read| *read > 0)?;
        let mut at = 0;
        while let Some(end) = memchr::memmem::find(&input[at..len], b"\r\n\r\n") {
            let body = length(&input[at..at + end]);
            if body > 0 {
                // Answers only after reading the whole request, as most servers do.
                let come = (len - at - end - 4).min(body);
                discard(&mut stream, body - come).await?;
                input.copy_within(at + end + 4 + come..len, at + end + 4);
                len -= come;
                match input[at..].starts_with(b"POST /items") {
                    true => kib(&mut output),
                    false => output.extend_from_slice(ANSWER),
                }
            } else if input[at..].starts_with(b"GET /chunked") {
                chunked(&mut output);
            } else if input[at..].starts_with(b"GET /tokens") {
                output.extend_from_slice(TOKENS);
            } else if input[at..].starts_with(b"DELETE ") {
                output.extend_from_slice(b"HTTP/1.1 204 No Content\r\nserver: upstream\r\n\r\n");
            } else if input[at..].starts_with(b"GET /large") {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LARGE_BYTES}\r\n\r\n");
                stream.write_all(head.as_bytes()).await.ok()?;
                for _ in 0..LARGE_BYTES / PIECE.len() {
                    stream.write_all(&PIECE).await.ok()?;
                }
            } else {
                output.extend_from_slice(ANSWER);
            }
            at += end + 4;
        }
        input.copy_within(at..len, 0);
        len -= at;
        stream.write_all(&output).await.ok()?;
        output.clear();
    }
}

fn kib(output: &mut Vec<u8>) {
    output.extend_from_slice(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1024\r\n\r\n",
    );
    output.extend_from_slice(&PIECE[..1024]);
}

/// The answer in two chunks.
fn chunked(output: &mut Vec<u8>) {
    output.extend_from_slice(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    for _ in 0..2 {
        output.extend_from_slice(b"200\r\n");
        output.extend_from_slice(&PIECE[..512]);
        output.extend_from_slice(b"\r\n");
    }
    output.extend_from_slice(b"0\r\n\r\n");
}

/// The length of the body after a head.
fn length(head: &[u8]) -> usize {
    let name = b"content-length:";
    let mut lines = head.split(|byte| *byte == b'\n');
    let line =
        lines.find(|line| line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name));
    let value = line.and_then(|line| str::from_utf8(&line[name.len()..]).ok());
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

async fn discard(stream: &mut TcpStream, mut bytes: usize) -> Option<()> {
    let mut room = [0; 4096];
    while bytes > 0 {
        let most = bytes.min(room.len());
        bytes -= stream.read(&mut room[..most]).await.ok().filter(|read| *read > 0)?;
    }
    Some(())
}
