//! gRPC over HTTP/2: messages in frames, statuses in trailers, deadlines in a header.

use super::GrpcResponse;
use super::status::{INVALID_ARGUMENT, Status, UNIMPLEMENTED};
use bytes::Bytes;
use futures_util::Stream;
use http_body_util::StreamBody;
use hyper::HeaderMap;
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use prost::Message;
use std::time::Duration;
use tollgate_net::{BoxError, ResponseBody};
use tollgate_policy::hex::percent_encode;

pub(super) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
pub(super) const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const ZERO: HeaderValue = HeaderValue::from_static("0");

/// Bytes before a message: the compression flag and the length.
pub(super) const FRAME_HEADER_BYTES: usize = 5;

impl Status {
    /// The response to a call with this status: headers only.
    pub(super) fn into_response(self) -> GrpcResponse {
        let mut response = GrpcResponse::new(ResponseBody::default());
        *response.headers_mut() = self.trailers();
        response.headers_mut().insert(CONTENT_TYPE, GRPC);
        response
    }

    /// The trailers of a call with this status.
    pub(super) fn trailers(&self) -> HeaderMap {
        let mut trailers = HeaderMap::new();
        trailers.insert(STATUS, HeaderValue::from(u16::from(self.code)));
        let is_plain = |byte| matches!(byte, b' '..=b'~') && byte != b'%';
        let message = percent_encode(self.message.as_bytes(), is_plain);
        if let Ok(message) = HeaderValue::from_str(&message) {
            trailers.insert(MESSAGE, message);
        }
        trailers
    }
}

/// The single message of a unary call.
pub(super) fn message(body: &[u8]) -> Result<&[u8], Status> {
    let head = body.split_first_chunk::<FRAME_HEADER_BYTES>();
    let Some(([compressed, length @ ..], rest)) = head else {
        return Err(Status::new(INVALID_ARGUMENT, "the call has no message"));
    };
    if *compressed != 0 {
        return Err(Status::new(UNIMPLEMENTED, "compressed messages are not supported"));
    }
    if rest.len() != u32::from_be_bytes(*length) as usize {
        return Err(Status::new(INVALID_ARGUMENT, "the call is not one message"));
    }
    Ok(rest)
}

pub(super) fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M, Status> {
    M::decode(bytes).map_err(|error| Status::new(INVALID_ARGUMENT, error.to_string()))
}

/// Encodes a message in its frame.
pub(super) fn frame_message(message: &impl Message) -> Bytes {
    frame(&mut Vec::new(), |out| message.encode_raw(out))
}

/// Frames the bytes that `write` appends. `buffer` is reused.
pub(super) fn frame(buffer: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    buffer.clear();
    buffer.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
    write(buffer);
    let length = u32::try_from(buffer.len() - FRAME_HEADER_BYTES).unwrap_or(u32::MAX);
    buffer[1..FRAME_HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
    Bytes::copy_from_slice(buffer)
}

/// The response to a call with status OK; `framed` is its message.
pub(super) fn ok_response(framed: Bytes) -> GrpcResponse {
    let mut response = GrpcResponse::new(ResponseBody::with_trailers(framed, ok_trailers()));
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

/// A response with several messages. Its connection counts as idle.
pub(super) fn stream_response(
    frames: impl Stream<Item = Result<Frame<Bytes>, BoxError>> + 'static,
) -> GrpcResponse {
    let body = ResponseBody::watch(Box::pin(StreamBody::new(frames)));
    let mut response = GrpcResponse::new(body);
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

pub(super) fn ok_trailers() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(STATUS, ZERO);
    trailers
}

/// Parses `grpc-timeout`: at most eight digits and a unit.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3_600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
