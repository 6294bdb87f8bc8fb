//! Which form of a refusal a client asks for.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

/// The form of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalFormat {
    /// RFC 9457.
    Problem,
    /// A plain object, for clients that ask for application/json by name.
    Json,
    /// A status in trailers, as gRPC has it.
    Grpc,
}

impl RefusalFormat {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let is_grpc = content_type
            .get(..16)
            .is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/grpc"));
        // gRPC-Web and others that only begin alike have another frame for their trailers.
        if is_grpc && matches!(content_type.get(16), None | Some(b'+' | b';' | b' ')) {
            return Self::Grpc;
        }
        let lines = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut json = false;
        for range in lines.flat_map(|line| line.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let is_refused = parts.any(is_zero);
            if is_refused {
                continue;
            }
            if kind.eq_ignore_ascii_case("application/problem+json") {
                return Self::Problem;
            }
            json |= kind.eq_ignore_ascii_case("application/json");
        }
        if json { Self::Json } else { Self::Problem }
    }
}

/// Whether a parameter is a weight of zero.
fn is_zero(parameter: &str) -> bool {
    let Some((name, weight)) = parameter.split_once('=') else { return false };
    let weight = weight.trim();
    name.trim().eq_ignore_ascii_case("q")
        && weight.starts_with('0')
        && weight.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}
