//! Messages of callers, and of health and reflection. Unknown fields are skipped.
//!
//! `envoy/service/ratelimit/v3/rls.proto`, `envoy/extensions/common/ratelimit/v3/ratelimit.proto`,
//! `google/protobuf/wrappers.proto`, `grpc/health/v1/health.proto` and
//! `grpc/reflection/v1/reflection.proto` have the numbers and types. A `RateLimitRequest` is also
//! read from proto3 JSON. `encode` writes `RateLimitResponse`.

#![expect(missing_docs, reason = "the names are those of the protocol")]

use super::proto_json::{or_default, unit, whole};
use prost::bytes::{Buf, BufMut};
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message, Oneof};
use serde::Deserialize;
use tollgate_policy::hex;

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RateLimitRequest {
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "or_default")]
    pub domain: String,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "or_default")]
    pub descriptors: Vec<RateLimitDescriptor>,
    #[prost(uint32, tag = "3")]
    #[serde(alias = "hits_addend", deserialize_with = "whole")]
    pub hits_addend: u32,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RateLimitDescriptor {
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "or_default")]
    pub entries: Vec<Entry>,
    #[prost(message, optional, tag = "2")]
    pub limit: Option<RateLimitOverride>,
    #[prost(message, optional, tag = "3")]
    #[serde(alias = "hits_addend")]
    pub hits_addend: Option<UInt64Value>,
    #[prost(bool, tag = "4")]
    #[serde(alias = "is_negative_hits", deserialize_with = "or_default")]
    pub is_negative_hits: bool,
}

/// Envoy puts the bytes of a client's headers and path here. They need not be UTF-8, and an error
/// would admit the request. So `bytes_to_text` accepts any bytes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Entry {
    #[serde(deserialize_with = "or_default")]
    pub key: String,
    #[serde(deserialize_with = "or_default")]
    pub value: String,
}

impl Message for Entry {
    fn encode_raw(&self, out: &mut impl BufMut) {
        encoding::string::encode(1, &self.key, out);
        encoding::string::encode(2, &self.value, out);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        from: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        let text = match tag {
            1 => &mut self.key,
            2 => &mut self.value,
            _ => return encoding::skip_field(wire_type, tag, from, context),
        };
        let mut bytes = Vec::new();
        encoding::bytes::merge(wire_type, &mut bytes, from, context)?;
        *text = bytes_to_text(bytes);
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        encoding::string::encoded_len(1, &self.key) + encoding::string::encoded_len(2, &self.value)
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Converts any bytes to text, without collisions. A byte that is not UTF-8 becomes U+FFFD and two
/// digits, and so does each byte of a U+FFFD.
fn bytes_to_text(bytes: Vec<u8>) -> String {
    const MARK: char = char::REPLACEMENT_CHARACTER;
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if !text.contains(MARK) => return text,
        text => text.map_or_else(|error| error.into_bytes(), String::into_bytes),
    };
    let mut text = String::with_capacity(2 * bytes.len());
    let escape = |text: &mut String, byte: u8| {
        text.push(MARK);
        hex::push(text, hex::LOWER, &[byte]);
    };
    for chunk in bytes.utf8_chunks() {
        for part in chunk.valid().split_inclusive(MARK) {
            let plain = part.strip_suffix(MARK);
            text.push_str(plain.unwrap_or(part));
            if plain.is_some() {
                MARK.to_string().bytes().for_each(|byte| escape(&mut text, byte));
            }
        }
        chunk.invalid().iter().for_each(|byte| escape(&mut text, *byte));
    }
    text
}

/// `RateLimitDescriptor.RateLimitOverride`. Its unit is an `envoy.type.v3.RateLimitUnit`, which has
/// no week.
#[derive(Clone, Copy, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RateLimitOverride {
    #[prost(uint32, tag = "1")]
    #[serde(alias = "requests_per_unit", deserialize_with = "whole")]
    pub requests_per_unit: u32,
    #[prost(int32, tag = "2")]
    #[serde(deserialize_with = "unit")]
    pub unit: i32,
}

/// A wrapper; in JSON, the number alone.
#[derive(Clone, Copy, PartialEq, Message, Deserialize)]
#[serde(transparent)]
pub struct UInt64Value {
    #[prost(uint64, tag = "1")]
    #[serde(deserialize_with = "whole")]
    pub value: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    pub service: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    pub status: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct ServerReflectionRequest {
    #[prost(string, tag = "1")]
    pub host: String,
    #[prost(oneof = "MessageRequest", tags = "3, 4, 5, 6, 7")]
    pub message_request: Option<MessageRequest>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum MessageRequest {
    #[prost(string, tag = "3")]
    FileByFilename(String),
    #[prost(string, tag = "4")]
    FileContainingSymbol(String),
    #[prost(bytes = "vec", tag = "5")]
    FileContainingExtension(Vec<u8>),
    #[prost(string, tag = "6")]
    AllExtensionNumbersOfType(String),
    #[prost(string, tag = "7")]
    ListServices(String),
}

#[derive(Clone, PartialEq, Message)]
pub struct ServerReflectionResponse {
    #[prost(string, tag = "1")]
    pub valid_host: String,
    #[prost(message, optional, tag = "2")]
    pub original_request: Option<ServerReflectionRequest>,
    #[prost(oneof = "MessageResponse", tags = "4, 6, 7")]
    pub message_response: Option<MessageResponse>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum MessageResponse {
    #[prost(message, tag = "4")]
    FileDescriptor(FileDescriptorResponse),
    #[prost(message, tag = "6")]
    ListServices(ListServiceResponse),
    #[prost(message, tag = "7")]
    Error(ErrorResponse),
}

#[derive(Clone, PartialEq, Message)]
pub struct FileDescriptorResponse {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub file_descriptor_proto: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ListServiceResponse {
    #[prost(message, repeated, tag = "1")]
    pub service: Vec<ServiceResponse>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ServiceResponse {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ErrorResponse {
    #[prost(int32, tag = "1")]
    pub error_code: i32,
    #[prost(string, tag = "2")]
    pub error_message: String,
}
