use super::*;
use crate::front::grpc::encode::tests::response::{Field, HeaderValue, Kind, ProtoValue, Struct};
use prost::Message;

#[test]
fn lengths_of_any_size_are_as_short_as_they_can_be() {
    for length in [0, 1, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 16_370, 16_384]
    {
        let text = "x".repeat(length);
        let value = Some(ProtoValue { kind: Some(Kind::Text(text.clone())) });
        let wanted = Struct { fields: vec![Field { key: "name".into(), value }] };
        let mut out = vec![7];
        ProtoWriter(&mut out).entry("name", |out| out.string([&*text]));
        assert_eq!(out[1..], wanted.encode_to_vec(), "{length}");
    }
}

#[test]
fn defaults_are_left_out_except_in_a_oneof() {
    let mut out = Vec::new();
    let (mut writer, field) = (ProtoWriter(&mut out), MessageField(1, "field"));
    writer.number(field, 0);
    writer.enumeration(field, 0, "UNKNOWN");
    writer.text(field, "");
    writer.lowercase(field, "");
    assert!(out.is_empty());
    for (kind, write) in [
        (Kind::Null(0), (|out| out.null()) as fn(&mut ProtoWriter<'_>)),
        (Kind::Number(0.0), |out| out.double(0.0)),
        (Kind::Number(-1.5), |out| out.double(-1.5)),
        (Kind::Text(String::new()), |out| out.string([""])),
        (Kind::Text("a=b".into()), |out| out.string(["a", "=", "b"])),
        (Kind::Bool(false), |out| out.boolean(false)),
    ] {
        out.clear();
        write(&mut ProtoWriter(&mut out));
        assert_eq!(out, ProtoValue { kind: Some(kind) }.encode_to_vec());
    }
}

#[test]
fn names_become_lower_case() {
    let mut out = Vec::new();
    let mut writer = ProtoWriter(&mut out);
    writer.lowercase(MessageField(1, "key"), "RateLimit-Policy");
    writer.text(MessageField(2, "value"), "Value");
    let wanted = HeaderValue { key: "ratelimit-policy".into(), value: "Value".into() };
    assert_eq!(out, wanted.encode_to_vec());
}
