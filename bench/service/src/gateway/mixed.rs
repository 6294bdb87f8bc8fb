//! Requests of typical API clients, in sequence on each connection.

use crate::contender::USERS;

/// Size of the body of a `POST`.
const BODY_BYTES: usize = 200;

/// `POST`s of 200 bytes of JSON, each answered with 1 KiB.
pub(super) fn posts() -> Vec<Vec<u8>> {
    (0..USERS).map(post).collect()
}

/// Of ten requests: four such `POST`s, four small `GET`s, one `GET` of 1 KiB in chunks, and a
/// `DELETE` without a response body.
pub(super) fn mixed() -> Vec<Vec<u8>> {
    let one = |user: usize| match user % 10 {
        0 | 3 | 5 | 8 => post(user),
        4 => request("GET", "/chunked", user, ""),
        9 => request("DELETE", "/items/1", user, ""),
        _ => request("GET", "/", user, ""),
    };
    (0..USERS).map(one).collect()
}

fn post(user: usize) -> Vec<u8> {
    let item = format!("{{\"name\": \"item-{user:06}\", \"count\": 1, \"text\": \"");
    let text = "x".repeat(BODY_BYTES - item.len() - 2);
    request("POST", "/items", user, &format!("{item}{text}\"}}"))
}

fn request(method: &str, path: &str, user: usize, body: &str) -> Vec<u8> {
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nX-User-Id: user-{user:06}\r\n");
    let more = match body.len() {
        0 => String::new(),
        length => format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"),
    };
    format!("{head}{more}\r\n{body}").into_bytes()
}
