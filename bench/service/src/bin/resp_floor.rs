//! The floor of the Redis protocol: a bare server on one current-thread runtime. It finds the ends
//! of commands, and answers each with the same five integers, one write per read.

use std::error::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A reply of `CL.THROTTLE` far below its limit.
const ANSWER: &[u8] = b"*5\r\n:0\r\n:100001\r\n:99876\r\n:-1\r\n:1\r\n";
/// The read size of the product.
const INPUT_BYTES: usize = 16 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        eprintln!("listening resp {}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(serve(stream));
        }
    })
}

/// Serves until the connection breaks; the load handles that.
async fn serve(mut stream: TcpStream) -> Option<()> {
    let (mut input, mut len, mut output) = (vec![0; INPUT_BYTES], 0, Vec::new());
    loop {
        len += stream.read(input.get_mut(len..)?).await.ok().filter(|read| *read > 0)?;
        let mut at = 0;
        while let Some(size) = command(&input[at..len]) {
            output.extend_from_slice(ANSWER);
            at += size;
        }
        input.copy_within(at..len, 0);
        len -= at;
        stream.write_all(&output).await.ok()?;
        output.clear();
    }
}

/// The length of the first command, if it is complete.
fn command(bytes: &[u8]) -> Option<usize> {
    let (count, mut at) = number(bytes, 1)?;
    for _ in 0..count {
        let (length, start) = number(bytes, at + 1)?;
        at = start + length + 2;
    }
    (at <= bytes.len()).then_some(at)
}

fn number(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut value = 0;
    for (place, byte) in bytes.get(at..)?.iter().enumerate() {
        match byte {
            b'\r' => return Some((value, at + place + 2)),
            digit => value = value * 10 + usize::from(digit - b'0'),
        }
    }
    None
}
