//! Server-sent events of the admin API.

use super::client::{Client, ClientError};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

/// The largest event. The figures of a policy with a thousand limits take 200 KiB.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// A stream of events.
pub(crate) struct EventReader {
    authority: String,
    body: Incoming,
    unread: Vec<u8>,
}

/// One event.
pub(crate) struct ServerEvent {
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Client {
    /// Opens a stream. Needs a runtime.
    pub(crate) async fn events(&self, path: &str) -> Result<EventReader, ClientError> {
        let body = self.open(path).await?;
        Ok(EventReader { authority: self.authority().to_owned(), body, unread: Vec::new() })
    }
}

impl EventReader {
    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<ServerEvent>, ClientError> {
        loop {
            if let Some(event) = self.take_event() {
                return Ok(Some(event));
            }
            let broken = |why: String| ClientError::Broken(self.authority.clone(), why);
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) if error.is_parse() => return Err(broken(error.to_string())),
                Some(Err(_)) => return Err(ClientError::Ended(self.authority.clone())),
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    if self.unread.len() + data.len() > EVENT_BYTES_MAX {
                        return Err(broken("an event has no end".to_owned()));
                    }
                    self.unread.extend_from_slice(&data);
                }
            }
        }
    }

    /// Takes a whole event from the bytes read so far. Comments are dropped.
    fn take_event(&mut self) -> Option<ServerEvent> {
        loop {
            let end = self.unread.windows(2).position(|pair| pair == b"\n\n")?;
            let rest = self.unread.split_off(end + 2);
            let event = std::mem::replace(&mut self.unread, rest);
            if let Some(event) = parse(&String::from_utf8_lossy(&event)) {
                return Some(event);
            }
        }
    }
}

/// Parses an event with a name and data on one line each, as tollgate writes them.
fn parse(text: &str) -> Option<ServerEvent> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let data = serde_json::from_str(field("data: ")?).ok()?;
    Some(ServerEvent { name: field("event: ")?.to_owned(), data })
}

#[cfg(test)]
mod tests;
