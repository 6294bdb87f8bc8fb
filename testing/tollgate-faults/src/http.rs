//! A minimal HTTP client for the check API.

use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status: 200, 429, 503, or unexpected.
    pub status: u16,
    /// `X-Tollgate-Source`.
    pub source: Option<String>,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// The body.
    pub body: String,
    /// Whether the server closes the connection.
    pub is_last: bool,
}

/// A connection to a node.
#[derive(Debug)]
pub struct Connection(TcpStream);

impl Connection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    /// Whether the server has closed the connection.
    pub fn is_over(&self) -> bool {
        !matches!(self.0.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends a request and reads the response.
    pub async fn post(&mut self, path: &str, body: &str) -> io::Result<Answer> {
        let length = body.len();
        let text = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.exchange(&text).await
    }

    /// Sends a GET request.
    pub async fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.exchange(&format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await
    }

    async fn exchange(&mut self, text: &str) -> io::Result<Answer> {
        self.0.write_all(text.as_bytes()).await?;
        let (mut bytes, mut buffer) = (Vec::new(), [0; 4_096]);
        loop {
            if let Some(answer) = parse(&bytes) {
                return Ok(answer);
            }
            match self.0.read(&mut buffer).await? {
                0 if bytes.is_empty() => return Err(io::ErrorKind::ConnectionAborted.into()),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => bytes.extend_from_slice(&buffer[..count]),
            }
        }
    }
}

/// Parses the response; `None` until it is complete.
fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let fields: Vec<_> = lines.filter_map(|line| line.split_once(": ")).collect();
    let field = |name: &str| {
        let field = fields.iter().find(|field| field.0.eq_ignore_ascii_case(name));
        field.map(|field| field.1.to_owned())
    };
    let length: usize = field("content-length").map_or(Some(0), |text| text.parse().ok())?;
    let body = bytes.get(end + 4..end + 4 + length)?;
    Some(Answer {
        status,
        source: field("x-tollgate-source"),
        retry_after: field("retry-after"),
        body: String::from_utf8_lossy(body).into_owned(),
        is_last: field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")),
    })
}

/// Sends one request, on a runtime of its own.
pub fn ask(address: SocketAddr, path: &str, body: Option<&str>) -> io::Result<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let asked = async {
            let mut connection = Connection::open(address).await?;
            match body {
                Some(body) => connection.post(path, body).await,
                None => connection.get(path).await,
            }
        };
        let late = |_| Err(io::ErrorKind::TimedOut.into());
        tokio::time::timeout(std::time::Duration::from_secs(30), asked).await.unwrap_or_else(late)
    })
}
