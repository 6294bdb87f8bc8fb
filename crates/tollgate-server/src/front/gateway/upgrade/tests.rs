use super::{is_foul, wanted};
use hyper::{
    HeaderMap,
    header::{HeaderValue, UPGRADE},
};

fn lines(values: &[&'static str]) -> HeaderMap {
    values.iter().map(|value| (UPGRADE, HeaderValue::from_static(value))).collect()
}

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
        let got = wanted(&lines(given));
        assert_eq!(got.as_ref().map(|value| value.to_str().unwrap()), expected, "{given:?}");
        assert_eq!(
            is_foul(&lines(given)),
            given.concat().to_lowercase().contains("h2c") || given.concat().contains("HTTP")
        );
    }
}
