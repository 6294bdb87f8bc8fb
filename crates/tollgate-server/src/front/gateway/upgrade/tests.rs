use super::{allowed_protocols, any_carries_http};

#[test]
fn requests_come_by_no_other_protocol() {
    let cases: [(&[&str], Option<&str>); 12] = [
        (&["websocket"], Some("websocket")),
        (&["WebSocket/13"], Some("WebSocket/13")),
        (&["h2c"], None),
        (&["H2C"], None),
        (&["HTTP/2.0"], None),
        (&["TLS/1.0, HTTP/1.1"], None),
        (&["websocket, h2c"], Some("websocket")),
        (&["h2c", "websocket"], Some("websocket")),
        (&[",, irc/6.9 ,rta/x11"], Some("irc/6.9, rta/x11")),
        (&["h2c /1"], None),
        (&[""], None),
        (&[], None),
    ];
    for (given, expected) in cases {
        let lines = || given.iter().map(|line| line.as_bytes());
        assert_eq!(allowed_protocols(lines()).as_deref(), expected.map(str::as_bytes), "{given:?}");
        assert_eq!(
            any_carries_http(lines()),
            given.concat().to_lowercase().contains("h2c") || given.concat().contains("HTTP")
        );
    }
}
