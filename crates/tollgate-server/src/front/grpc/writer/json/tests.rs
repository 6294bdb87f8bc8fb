use super::*;

/// The test vectors of RFC 4648, section 10, and the last digits of the alphabet.
#[test]
fn bytes_are_padded_base64() {
    for (bytes, encoded) in [
        (&b""[..], ""),
        (b"f", "Zg=="),
        (b"fo", "Zm8="),
        (b"foo", "Zm9v"),
        (b"foob", "Zm9vYg=="),
        (b"fooba", "Zm9vYmE="),
        (b"foobar", "Zm9vYmFy"),
        (b"\xfb\xff\xfe", "+//+"),
    ] {
        assert_eq!(base64::encode(bytes), encoded);
    }
}

#[test]
fn defaults_are_left_out_except_in_values() {
    let field = |name| MessageField(1, name);
    let written = object(|out| {
        out.number(field("number"), 0);
        out.enumeration(field("enumeration"), 0, "UNKNOWN");
        out.text(field("text"), "");
        out.bytes(field("bytes"), b"");
        out.message(field("message"), |_| {});
        out.seconds(field("seconds"), 0);
        out.entry("null", |out| out.null());
        out.entry("list", |out| out.list(|out| out.element(|out| out.string([""]))));
        out.entry("structure", |out| out.structure(|_| {}));
    });
    let wanted =
        json!({"message": {}, "seconds": "0s", "null": null, "list": [""], "structure": {}});
    assert_eq!(written, wanted);
}
