//! The access log of the gateway: one line for each request, in the form of Apache, or as JSON.

use super::line::{cut, is_request_id, push_quoted};
use super::sink::LineSink;
use crate::net::{Answer, BodyStream, BoxError};
use crate::observe::time::{common_log_time, rfc3339};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use serde::Serialize;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tollgate::store::ProcessClock;
use tollgate_policy::settings::{self, AccessFormat};

/// The access log of one file.
#[derive(Debug)]
pub(crate) struct AccessLog {
    format: AccessFormat,
    sink: LineSink,
}

/// One request to the gateway. Texts are as the client sent them.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct AccessEntry {
    #[serde(serialize_with = "as_time")]
    pub(crate) time: u64,
    pub(crate) client: String,
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) protocol: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) referer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user_agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    pub(crate) status: u16,
    /// Bytes of the body that were sent.
    pub(crate) bytes: u64,
    /// How the request ended, as in `tollgate_requests_total`.
    pub(crate) outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream: Option<String>,
    /// Until the last byte of the body was handed over.
    pub(crate) duration_us: u64,
}

fn as_time<S: serde::Serializer>(time_us: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*time_us))
}

impl AccessLog {
    pub(super) fn new(settings: &settings::AccessLog, sink: LineSink) -> Self {
        Self { format: settings.format, sink }
    }

    pub(super) fn sink(&self) -> &LineSink {
        &self.sink
    }

    /// Writes an entry.
    pub(crate) fn write(&self, entry: &AccessEntry) {
        let line = match self.format {
            AccessFormat::Json => serde_json::to_string(entry).unwrap_or_default(),
            AccessFormat::Common => common(entry),
            AccessFormat::Combined => {
                let mut line = common(entry);
                for header in [&entry.referer, &entry.user_agent] {
                    line.push_str(" \"");
                    push_quoted(&mut line, header.as_deref().unwrap_or_default());
                    line.push('"');
                }
                line
            }
        };
        self.sink.write((line + "\n").as_bytes());
    }
}

impl AccessEntry {
    /// A text of the request, cut.
    pub(crate) fn text(text: &str) -> String {
        cut(text).to_owned()
    }

    /// The id of a request that has a usable one.
    pub(crate) fn id(text: Option<&str>) -> Option<String> {
        text.filter(|id| is_request_id(id)).map(str::to_owned)
    }
}

/// `client - - [time] "request" status bytes`.
fn common(entry: &AccessEntry) -> String {
    let AccessEntry { client, method, target, protocol, status, bytes, .. } = entry;
    let mut line = format!("{client} - - [{}] \"", common_log_time(entry.time));
    push_quoted(&mut line, method);
    line.push(' ');
    push_quoted(&mut line, target);
    // Writing to a string cannot fail.
    let _ = match bytes {
        0 => write!(line, " {protocol}\" {status} -"),
        _ => write!(line, " {protocol}\" {status} {bytes}"),
    };
    line
}

/// The entry of a request that is being answered. It is written when this is dropped.
#[derive(Debug)]
pub(crate) struct PendingAccess {
    entry: AccessEntry,
    log: Arc<AccessLog>,
}

/// nginx's status for a client that left before its response.
const CLIENT_LEFT: u16 = 499;

impl PendingAccess {
    pub(crate) fn new(mut entry: AccessEntry, log: Arc<AccessLog>) -> Self {
        (entry.status, entry.outcome) = (CLIENT_LEFT, "abandoned");
        Self { entry, log }
    }

    /// The request has this answer. The entry is written with the last byte of the body.
    pub(crate) fn answered(
        mut self,
        outcome: &'static str,
        upstream: Option<&str>,
        answer: &mut Answer,
    ) {
        let entry = &mut self.entry;
        (entry.status, entry.outcome) = (answer.status.as_u16(), outcome);
        entry.upstream = upstream.map(str::to_owned);
        match answer.stream.take() {
            Some(body) => answer.stream = Some(Box::pin(LoggedBody { body, pending: self })),
            None => entry.bytes = answer.body.len() as u64,
        }
    }
}

impl Drop for PendingAccess {
    fn drop(&mut self) {
        self.entry.duration_us = ProcessClock.now_us().saturating_sub(self.entry.time);
        self.log.write(&self.entry);
    }
}

/// A streamed body that counts its bytes for the access log.
struct LoggedBody {
    body: BodyStream,
    pending: PendingAccess,
}

impl Body for LoggedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = self.body.as_mut().poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.pending.entry.bytes += data.len() as u64;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
