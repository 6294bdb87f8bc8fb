//! Answers, written into memory that is used again.

use super::{
    encode::{self, fields},
    openapi,
};
use crate::front::date::DateLine;
use crate::net::{Body, PlainAnswer, Response};
use bytes::{Bytes, BytesMut};
use hyper::{
    HeaderMap, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
};
use tollgate::{Settled, Verdict};
use tollgate_core::header::{Fields, Profile};
use tollgate_tower::field_name;

/// Room for an answer with a few limits, so that a new buffer seldom grows.
const ROOM: usize = 2048;

/// What answers are written with.
#[derive(Debug, Default)]
pub(super) struct Writer {
    fields: Fields,
    json: Vec<u8>,
    /// Body and field values of an answer lie here together. Once it has been sent the memory is free for the next one.
    shared: BytesMut,
    date: DateLine,
}

impl Writer {
    /// What was decided, and the reservation where there is one, in the header map of the request.
    pub(super) fn decided(
        &mut self,
        verdict: &Verdict<'_>,
        reserved: Option<(&str, u64)>,
        profiles: &[Profile],
        now_us: u64,
        mut headers: HeaderMap,
    ) -> Response {
        let json = &mut self.json;
        json.clear();
        encode::verdict(json, verdict);
        if let Some((id, ttl_us)) = reserved {
            json.extend_from_slice(b",\"reservation\":");
            encode::string(json, id);
            json.extend_from_slice(b",\"expires_after\":");
            encode::seconds(json, ttl_us);
        }
        json.push(b'}');
        headers.clear();
        usual(&mut headers);
        fields::each(verdict, profiles, now_us, &mut self.fields, |name, value| {
            let value = share(&mut self.shared, value.as_bytes());
            if let (Some(name), Ok(value)) =
                (field_name(name), HeaderValue::from_maybe_shared(value))
            {
                headers.insert(name, value);
            }
        });
        self.answer(fields::status(verdict), headers)
    }

    /// What was decided, as it goes over the wire.
    pub(super) fn plain(
        &mut self,
        verdict: &Verdict<'_>,
        profiles: &[Profile],
        now_us: u64,
        answer: &mut PlainAnswer,
    ) {
        answer.status = fields::status(verdict);
        let lines = &mut answer.fields;
        lines.extend_from_slice(b"content-type: application/json\r\ncache-control: no-store\r\n");
        // In lower case, as the other way has them.
        fields::lines(verdict, profiles, now_us, &mut self.fields, lines);
        lines.extend_from_slice(self.date.at(now_us));
        encode::verdict(&mut answer.body, verdict);
        answer.body.push(b'}');
    }

    /// How a reservation ended.
    pub(super) fn ended(
        &mut self,
        id: &str,
        settled: &Settled,
        mut headers: HeaderMap,
    ) -> Response {
        let json = &mut self.json;
        json.clear();
        json.extend_from_slice(b"{\"reservation\":");
        encode::string(json, id);
        json.extend_from_slice(b",\"charged\":");
        encode::integer(json, settled.charged);
        json.extend_from_slice(b",\"limits\":");
        encode::rows(json, settled.rows());
        json.push(b'}');
        headers.clear();
        usual(&mut headers);
        self.answer(200, headers)
    }

    fn answer(&mut self, status: u16, headers: HeaderMap) -> Response {
        let mut response = Response::new(Body::new(share(&mut self.shared, &self.json)));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        *response.headers_mut() = headers;
        response
    }
}

/// The description of the API, in the header map of the request.
pub(super) fn openapi(mut headers: HeaderMap) -> Response {
    headers.clear();
    usual(&mut headers);
    let mut response = Response::new(Body::new(Bytes::from_static(openapi::openapi())));
    *response.headers_mut() = headers;
    response
}

fn usual(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

fn share(shared: &mut BytesMut, bytes: &[u8]) -> Bytes {
    if shared.capacity() - shared.len() < bytes.len() {
        shared.reserve(bytes.len().max(ROOM));
    }
    shared.extend_from_slice(bytes);
    shared.split().freeze()
}
