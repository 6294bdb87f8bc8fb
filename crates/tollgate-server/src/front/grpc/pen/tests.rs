use super::*;
use crate::front::grpc::wire::{Field, HeaderValue, Kind, Struct, Value};
use prost::Message;

#[test]
fn lengths_of_any_size_are_as_short_as_they_can_be() {
    for length in [0, 1, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 16_370, 16_384]
    {
        let wanted = Struct {
            fields: vec![Field {
                key: "name".into(),
                value: Some(Value { kind: Some(Kind::Text("x".repeat(length))) }),
            }],
        };
        let mut out = vec![7];
        Pen(&mut out).message(1, |pen| {
            pen.text(1, "name");
            pen.message(2, |pen| pen.bytes_as_is(3, "x".repeat(length).as_bytes()));
        });
        assert_eq!(out[1..], wanted.encode_to_vec(), "{length}");
    }
}

#[test]
fn defaults_are_left_out_except_where_they_say_which_of_several_it_is() {
    let mut out = Vec::new();
    let mut pen = Pen(&mut out);
    pen.number(1, 0);
    pen.text(2, "");
    pen.small(3, "");
    assert!(out.is_empty());
    for (kind, write) in [
        (Kind::Null(0), (|pen| pen.number_as_is(1, 0)) as fn(&mut Pen<'_>)),
        (Kind::Number(0.0), |pen| pen.double_as_is(2, 0.0)),
        (Kind::Number(-1.5), |pen| pen.double_as_is(2, -1.5)),
        (Kind::Text(String::new()), |pen| pen.bytes_as_is(3, b"")),
        (Kind::Bool(false), |pen| pen.number_as_is(4, 0)),
    ] {
        out.clear();
        write(&mut Pen(&mut out));
        assert_eq!(out, Value { kind: Some(kind) }.encode_to_vec());
    }
}

#[test]
fn names_become_small() {
    let mut out = Vec::new();
    let mut pen = Pen(&mut out);
    pen.small(1, "RateLimit-Policy");
    pen.text(2, "Value");
    let wanted = HeaderValue { key: "ratelimit-policy".into(), value: "Value".into() };
    assert_eq!(out, wanted.encode_to_vec());
}
