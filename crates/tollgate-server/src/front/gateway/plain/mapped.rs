//! The short way to a server for requests that are kept as maps, as those by HTTP/2 are.
//!
//! What is plain is the same as where requests are kept in their bytes, on the way there and on the way back.

use super::{
    super::{Gateway, body::Answer, upstream::Server},
    Errand,
    request::{self, Plain},
    response::{self, Came, Form},
};
use crate::net::{Caller, is_plain_field, is_plain_target};
use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Response, StatusCode, Version,
    header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue},
    http::request::Parts,
};
use tollgate::Spares;
use tollgate_policy::settings;

/// Fields of most answers with ours among them.
const FIELDS: usize = 12;

thread_local! {
    static REQUEST: Spares<Vec<u8>> = const { Spares::new() };
}

/// From a map to a map.
pub(in super::super) struct Mapped<'a> {
    gateway: &'a Gateway,
    caller: &'a Caller,
    head: &'a Parts,
    target: &'a str,
    host: &'a HeaderValue,
    #[expect(clippy::box_collection, reason = "spares are kept in boxes")]
    request: Box<Vec<u8>>,
    answer: Option<Response<Answer>>,
}

impl<'a> Mapped<'a> {
    /// For a request without a body that names its host in a field; `None` unless it is plain.
    pub(in super::super) fn new(
        gateway: &'a Gateway,
        caller: &'a Caller,
        head: &'a Parts,
    ) -> Option<Self> {
        let target = head.uri.path_and_query()?.as_str();
        let host = head.headers.get(HOST)?;
        let mut fields = head.headers.iter();
        let is_plain = matches!(head.method, Method::GET | Method::DELETE | Method::OPTIONS)
            && head.version >= Version::HTTP_11
            && is_plain_target(target)
            // There is no body that it could be about.
            && !head.headers.contains_key(CONTENT_LENGTH)
            && fields.all(|(name, value)| is_plain_field(name.as_str(), value.as_bytes()));
        is_plain.then(|| {
            let request = REQUEST.with(Spares::take);
            Self { gateway, caller, head, target, host, request, answer: None }
        })
    }

    /// The answer, once there is one.
    pub(in super::super) fn into_answer(mut self) -> Option<Response<Answer>> {
        self.answer.take()
    }
}

impl Drop for Mapped<'_> {
    fn drop(&mut self) {
        let mut request = std::mem::take(&mut self.request);
        request.clear();
        // A thread that is ending keeps nothing.
        REQUEST.try_with(|spares| spares.put(request)).ok();
    }
}

impl Plain for Mapped<'_> {
    fn method(&self) -> &str {
        self.head.method.as_str()
    }

    fn target(&self) -> &str {
        self.target
    }

    fn host(&self) -> &[u8] {
        self.host.as_bytes()
    }

    fn version(&self) -> Version {
        self.head.version
    }

    fn body(&self) -> &[u8] {
        &[]
    }

    fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.head.headers.iter().map(|(name, value)| (name.as_ref(), value.as_bytes()))
    }
}

impl Errand for Mapped<'_> {
    fn may_repeat(&self) -> bool {
        self.head.method.is_idempotent()
    }

    fn request(&mut self, server: &Server, settings: &settings::Gateway) -> &[u8] {
        let from = self.gateway.from(self.head, self.caller, server, settings);
        let mut request = std::mem::take(&mut self.request);
        request::write(self, &from, &mut request);
        self.request = request;
        &self.request
    }

    fn answer(&mut self, bytes: &[u8], room: usize) -> Came {
        let mut map = Map::default();
        let came = response::read(bytes, room, false, &mut map);
        if came == Came::Whole {
            let mut answer = Response::new(Answer::own(map.body));
            *answer.status_mut() = map.status;
            *answer.headers_mut() = map.headers;
            self.answer = Some(answer);
        }
        came
    }
}

/// An answer as a map. All values are parts of one copy of its head.
#[derive(Default)]
struct Map {
    head: Bytes,
    /// Where the head lies that was copied.
    start: usize,
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Form for Map {
    fn begin(&mut self, status: StatusCode, head: &[u8]) {
        self.head = Bytes::copy_from_slice(head);
        self.start = head.as_ptr().addr();
        self.status = status;
        self.headers.reserve(FIELDS);
    }

    fn field(&mut self, name: &str, value: &[u8]) -> Option<()> {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let value = match value.is_empty() {
            // A value that is nothing lies nowhere.
            true => HeaderValue::from_static(""),
            false => {
                let start = value.as_ptr().addr().checked_sub(self.start)?;
                let value = self.head.slice(start..start + value.len());
                HeaderValue::from_maybe_shared(value).ok()?
            }
        };
        self.headers.append(name, value);
        Some(())
    }

    /// HTTP/2 says it all the same.
    fn unsized_body(&mut self) -> Option<()> {
        None
    }

    /// HTTP/2 has no chunks.
    fn chunked(&mut self) -> Option<()> {
        None
    }

    fn end(&mut self, _: bool, body: &[u8]) {
        self.body = Bytes::copy_from_slice(body);
    }
}
