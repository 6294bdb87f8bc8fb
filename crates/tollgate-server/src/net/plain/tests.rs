use super::*;

const HEAD: &str = "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";

fn kind(bytes: &str) -> &'static str {
    match find(bytes.as_bytes()) {
        Found::Whole(..) => "whole",
        Found::Part => "part",
        Found::Unusual => "unusual",
    }
}

#[test]
fn a_plain_request_is_found_with_all_of_its_parts() {
    let bytes = format!("{HEAD}Content-Length: 5\r\n\r\nhellomore");
    let Found::Whole(request, size) = find(bytes.as_bytes()) else { panic!("not plain") };
    assert_eq!((request.path, request.body), ("/v1/check", b"hello".as_slice()));
    assert_eq!(request.content_type, b"application/json");
    assert_eq!(&bytes[size..], "more");
}

#[test]
fn each_beginning_of_it_is_part_of_one() {
    let bytes = format!("{HEAD}content-length: 5\r\n\r\nhello");
    for len in 0..bytes.len() {
        assert_eq!(kind(&bytes[..len]), "part", "{len}");
    }
}

#[test]
fn fields_that_change_nothing_are_plain() {
    for field in ["Connection: Keep-Alive", "accept: */*", "user-agent: curl/8", "x-te: y"] {
        assert_eq!(
            kind(&format!("{HEAD}{field}\r\ncontent-length: 0\r\n\r\n")),
            "whole",
            "{field}"
        );
    }
}

#[test]
fn what_changes_how_the_connection_goes_on_is_not_plain() {
    let fields = [
        "Connection: close",
        "connection: keep-alive, te",
        "Transfer-Encoding: chunked",
        "Expect: 100-continue",
        "Upgrade: h2c",
        "TE: trailers",
        "Trailer: x",
        "Host: y",
        "Content-Type: text/plain",
        "Content-Length: 0",
    ];
    for field in fields {
        let bytes = format!("{HEAD}{field}\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(kind(&bytes), "unusual", "{field}");
    }
    for length in ["", "+1", "-1", "1 1", "1,1", "0x1", "123456"] {
        assert_eq!(
            kind(&format!("{HEAD}content-length: {length}\r\n\r\n1")),
            "unusual",
            "{length}"
        );
    }
    let many: String = (0..FIELDS_MAX).map(|n| format!("x-{n}: y\r\n")).collect();
    assert_eq!(kind(&format!("{HEAD}{many}content-length: 0\r\n\r\n")), "unusual");
}

#[test]
fn what_is_missing_or_malformed_is_not_plain() {
    let without = |what: &str| format!("{HEAD}content-length: 0\r\n\r\n").replace(what, "");
    let heads = [
        without("host: x\r\n"),
        without("content-type: application/json\r\n"),
        without("content-length: 0\r\n"),
        without("HTTP/1.1"),
        without("/v1/check "),
        format!("{HEAD}content-length: 0\r\n\r\n").replace("1.1", "1.0"),
        format!("{HEAD}content-length: 0\r\n\r\n").replace("POST", "GET"),
        format!("{HEAD}content-length : 0\r\n\r\n"),
        format!("{HEAD} folded: 0\r\ncontent-length: 0\r\n\r\n"),
    ];
    for head in heads {
        assert_eq!(kind(&head), "unusual", "{head}");
    }
}
