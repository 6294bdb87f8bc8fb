//! `grpc.reflection.v1.ServerReflection` and its equal `v1alpha`: the services, for tools such as
//! grpcurl. A tool asks several questions on one stream, so the answers are a stream too.

use super::framing::{self, HEAD};
use super::messages::{
    Files, ReflectionError, ServerReflectionRequest, ServerReflectionResponse, Service, Services,
    Told, Wanted,
};
use super::status::{INVALID_ARGUMENT, NOT_FOUND, Status, UNIMPLEMENTED};
use crate::net::{Body, Response, Unread};
use bytes::{Buf, Bytes, BytesMut};
use hyper::body::{Frame, Incoming};
use hyper::header::CONTENT_TYPE;
use prost::Message;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// Made by protoc from the files beside it.
const DESCRIPTORS: &[u8] = include_bytes!("proto/descriptors.bin");

const SERVICES: [&str; 2] = [super::SERVICE, "grpc.health.v1.Health"];

/// How long a tool may stay.
const STAY: Duration = Duration::from_secs(60);
/// How long a question may be.
const QUESTION_BYTES_MAX: usize = 4096;

/// Answers until whoever asks is done, or time is up.
pub(super) fn answer(body: Unread) -> Response {
    let stream = Answers {
        body: body.into_incoming(),
        waiting: BytesMut::new(),
        until: Box::pin(sleep(STAY)),
        is_done: false,
    };
    let mut response = Response::new(Body::stream(stream));
    response.headers_mut().insert(CONTENT_TYPE, framing::GRPC);
    response
}

struct Answers {
    body: Incoming,
    /// What has come of the next question.
    waiting: BytesMut,
    until: Pin<Box<Sleep>>,
    is_done: bool,
}

impl hyper::body::Body for Answers {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if this.is_done {
            return Poll::Ready(None);
        }
        loop {
            match question(&mut this.waiting) {
                Ok(Some(question)) => {
                    let data = framing::framed(&told(question));
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Ok(None) => {}
                Err(status) => {
                    this.is_done = true;
                    return Poll::Ready(Some(Ok(Frame::trailers(status.trailers()))));
                }
            }
            if this.until.as_mut().poll(context).is_ready() {
                break;
            }
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => {
                    this.waiting.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
                }
                Some(Err(_)) | None => break,
            }
        }
        this.is_done = true;
        Poll::Ready(Some(Ok(Frame::trailers(framing::trailers()))))
    }
}

/// The next question, once all of it is there.
fn question(waiting: &mut BytesMut) -> Result<Option<ServerReflectionRequest>, Status> {
    let Some([compressed, length @ ..]) = waiting.first_chunk::<HEAD>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    if *compressed != 0 || length > QUESTION_BYTES_MAX {
        return Err(Status::new(UNIMPLEMENTED, "compressed or longer than 4096 bytes"));
    }
    if waiting.len() < HEAD + length {
        return Ok(None);
    }
    waiting.advance(HEAD);
    framing::decode(&waiting.split_to(length)).map(Some)
}

/// What is said to a question.
fn told(question: ServerReflectionRequest) -> ServerReflectionResponse {
    let error = |code: u8, message: &str| {
        let (error_code, error_message) = (i32::from(code), message.to_owned());
        Told::Error(ReflectionError { error_code, error_message })
    };
    let named = |name: &str| match name.is_empty() {
        true => error(INVALID_ARGUMENT, "nothing was asked for"),
        false => error(NOT_FOUND, "there is no such file, service or message"),
    };
    let told = match &question.wanted {
        Some(Wanted::ListServices(_)) => {
            let service = SERVICES.map(|name| Service { name: name.to_owned() });
            Told::Services(Services { service: service.into() })
        }
        Some(Wanted::FileByFilename(name)) => {
            files(|file| file.name == *name).unwrap_or_else(|| named(name))
        }
        Some(Wanted::FileContainingSymbol(symbol)) => {
            files(|file| file.declares(symbol)).unwrap_or_else(|| named(symbol))
        }
        Some(Wanted::FileContainingExtension(_) | Wanted::AllExtensionNumbersOfType(_)) => {
            error(NOT_FOUND, "there are no extensions")
        }
        None => error(INVALID_ARGUMENT, "nothing was asked for"),
    };
    let valid_host = question.host.clone();
    ServerReflectionResponse { valid_host, original_request: Some(question), told: Some(told) }
}

/// The file for which this holds, with all that it builds on.
fn files(is_it: impl Fn(&File) -> bool) -> Option<Told> {
    let all = FileSet::decode(DESCRIPTORS).ok()?.file;
    let read = |bytes: &Vec<u8>| File::decode(&**bytes).ok();
    let mut found =
        vec![all.iter().find(|bytes| read(bytes).is_some_and(|file| is_it(&file)))?.clone()];
    let mut next = 0;
    while let Some(file) = found.get(next).and_then(read) {
        for name in file.dependency {
            let named = |bytes: &&Vec<u8>| read(bytes).is_some_and(|file| file.name == name);
            if let Some(bytes) = all.iter().find(named)
                && !found.contains(bytes)
            {
                found.push(bytes.clone());
            }
        }
        next += 1;
    }
    Some(Told::Files(Files { file_descriptor_proto: found }))
}

/// `FileDescriptorSet`, with each file as it is sent.
#[derive(Clone, PartialEq, Message)]
struct FileSet {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file: Vec<Vec<u8>>,
}

/// As much of `FileDescriptorProto` as says what is in it.
#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    package: String,
    #[prost(string, repeated, tag = "3")]
    dependency: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    message_type: Vec<Declared>,
    #[prost(message, repeated, tag = "5")]
    enum_type: Vec<Declared>,
    #[prost(message, repeated, tag = "6")]
    service: Vec<Declared>,
}

#[derive(Clone, PartialEq, Message)]
struct Declared {
    #[prost(string, tag = "1")]
    name: String,
}

impl File {
    /// Whether the symbol, or what it is in, is one of this file.
    fn declares(&self, symbol: &str) -> bool {
        let Some(rest) =
            symbol.strip_prefix(&*self.package).and_then(|rest| rest.strip_prefix('.'))
        else {
            return false;
        };
        let first = rest.split('.').next().unwrap_or_default();
        let all = self.message_type.iter().chain(&self.enum_type).chain(&self.service);
        all.into_iter().any(|one| one.name == first)
    }
}
