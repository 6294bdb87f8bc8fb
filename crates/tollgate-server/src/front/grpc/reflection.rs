//! `grpc.reflection.v1.ServerReflection` and its equal `v1alpha`: the services, for tools such as
//! grpcurl. A tool asks several questions on one stream, so the answers are a stream too.

use super::GrpcResponse;
use super::framing::{self, FRAME_HEADER_BYTES};
use super::messages::{
    ErrorResponse, FileDescriptorResponse, ListServiceResponse, MessageRequest, MessageResponse,
    ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
};
use super::status::{INVALID_ARGUMENT, NOT_FOUND, Status, UNIMPLEMENTED};
use bytes::{Buf, Bytes, BytesMut};
use futures_util::stream;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use prost::Message;
use std::time::Duration;
use tokio::time::sleep;

/// A `FileDescriptorSet`, made by protoc from the files beside it.
const DESCRIPTORS: &[u8] = include_bytes!("proto/descriptors.bin");

const SERVICES: [&str; 2] = [super::SERVICE, "grpc.health.v1.Health"];

/// How long a client may stay.
const STREAM_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of a question at most.
const QUESTION_BYTES_MAX: usize = 4096;

/// Answers until the client is done, or time is up.
pub(super) fn answer(body: Incoming) -> GrpcResponse {
    let start = Some((body, BytesMut::new(), Box::pin(sleep(STREAM_TIMEOUT))));
    let answers = stream::unfold(start, |conversation| async move {
        let (mut body, mut buffer, mut deadline) = conversation?;
        let trailers = loop {
            match take_question(&mut buffer) {
                Ok(Some(question)) => {
                    let data = framing::frame_message(&respond(question));
                    return Some((Ok(Frame::data(data)), Some((body, buffer, deadline))));
                }
                Ok(None) => {}
                Err(status) => break status.trailers(),
            }
            tokio::select! {
                biased;
                () = &mut deadline => break framing::ok_trailers(),
                frame = body.frame() => match frame {
                    Some(Ok(frame)) => {
                        buffer.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
                    }
                    Some(Err(_)) | None => break framing::ok_trailers(),
                },
            }
        };
        Some((Ok(Frame::trailers(trailers)), None))
    });
    framing::stream_response(answers)
}

/// The next question, once it is complete.
fn take_question(waiting: &mut BytesMut) -> Result<Option<ServerReflectionRequest>, Status> {
    let Some([compressed, length @ ..]) = waiting.first_chunk::<FRAME_HEADER_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    if *compressed != 0 || length > QUESTION_BYTES_MAX {
        return Err(Status::new(UNIMPLEMENTED, "compressed or longer than 4096 bytes"));
    }
    if waiting.len() < FRAME_HEADER_BYTES + length {
        return Ok(None);
    }
    waiting.advance(FRAME_HEADER_BYTES);
    framing::decode(&waiting.split_to(length)).map(Some)
}

/// The response to a question.
fn respond(question: ServerReflectionRequest) -> ServerReflectionResponse {
    let error = |code: u8, message: &str| {
        let (error_code, error_message) = (i32::from(code), message.to_owned());
        MessageResponse::Error(ErrorResponse { error_code, error_message })
    };
    let named = |name: &str| match name.is_empty() {
        true => error(INVALID_ARGUMENT, "nothing was asked for"),
        false => error(NOT_FOUND, "there is no such file, service or message"),
    };
    let message_response = match &question.message_request {
        Some(MessageRequest::ListServices(_)) => {
            let service = SERVICES.map(|name| ServiceResponse { name: name.to_owned() });
            MessageResponse::ListServices(ListServiceResponse { service: service.into() })
        }
        Some(MessageRequest::FileByFilename(name)) => {
            find_files(|file| file.name == *name).unwrap_or_else(|| named(name))
        }
        Some(MessageRequest::FileContainingSymbol(symbol)) => {
            find_files(|file| file.declares(symbol)).unwrap_or_else(|| named(symbol))
        }
        Some(
            MessageRequest::FileContainingExtension(_)
            | MessageRequest::AllExtensionNumbersOfType(_),
        ) => error(NOT_FOUND, "there are no extensions"),
        None => error(INVALID_ARGUMENT, "nothing was asked for"),
    };
    ServerReflectionResponse {
        valid_host: question.host.clone(),
        original_request: Some(question),
        message_response: Some(message_response),
    }
}

/// The first file for which `is_it` holds, with all files that it imports.
fn find_files(is_it: impl Fn(&File) -> bool) -> Option<MessageResponse> {
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
    Some(MessageResponse::FileDescriptor(FileDescriptorResponse { file_descriptor_proto: found }))
}

/// `FileDescriptorSet`, with each file as it is sent.
#[derive(Clone, PartialEq, Message)]
struct FileSet {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file: Vec<Vec<u8>>,
}

/// The fields of `FileDescriptorProto` that name its content.
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
    /// Whether this file declares the symbol, or the message around it.
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
