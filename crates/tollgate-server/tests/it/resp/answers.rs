//! The replies of each command.

use super::{RespClient, RespServer, Value, command};
use std::net::TcpStream;
use tollgate_observe::metrics::Front;

/// The rows of redis-cell's table in which no time passes.
#[test]
fn cl_throttle_answers_as_redis_cell_does() {
    let served = RespServer::new("");
    let mut client = served.client();
    assert_eq!(client.line("CL.THROTTLE u 15 30 60"), "0 16 15 -1 2");
    assert_eq!(client.line("cl.throttle f 4 1 3600 6"), "1 5 5 -1 0");
    for left in (0..5).rev() {
        let answer = client.line("Cl.Throttle f 4 1 3600");
        assert!(answer.starts_with(&format!("0 5 {left} -1 ")), "{answer}");
    }
    assert_eq!(client.line("CL.THROTTLE f 4 1 3600"), "1 5 0 3600 18000");
    assert_eq!(
        client.line("CL.THROTTLE f 4 0 1"),
        "-Cell error: Store error: Zero rates are not supported"
    );
    assert_eq!(
        client.ask(&["CL.THROTTLE", "k", "4", "a\r\n+OK", "1"]).line(),
        "-Cell error: Store error: Couldn't parse as integer: a  +OK"
    );
    // A key may be any bytes; some make redis-cell crash.
    client.send(b"*5\r\n$11\r\nCL.THROTTLE\r\n$3\r\n\xff\0\n\r\n$1\r\n4\r\n$1\r\n1\r\n$1\r\n1\r\n");
    assert_eq!(client.answer().line(), "0 5 4 -1 1");
    assert_eq!(client.line("GCRA f 4 1 3600"), "1 5 0 3600 18000");
}

#[test]
fn what_clients_say_first_is_understood() {
    let served = RespServer::new("");
    let mut client = served.client();
    for (words, answer) in [
        ("PING", "PONG"),
        ("ping hello", "hello"),
        ("ECHO hello", "hello"),
        ("SELECT 0", "OK"),
        ("SELECT 1", "-ERR DB index is out of range"),
        ("SELECT x", "-ERR value is not an integer or out of range"),
        ("CLIENT SETNAME me", "OK"),
        ("CLIENT GETNAME", "me"),
        ("CLIENT SETINFO LIB-NAME mine", "OK"),
        ("CLIENT NO-EVICT ON", "OK"),
        ("HELLO 4", "-NOPROTO unsupported protocol version"),
        ("HELLO x", "-ERR Protocol version is not an integer or out of range"),
        ("HELLO 3 SETNAME", "-ERR Syntax error in HELLO"),
        ("ECHO", "-ERR wrong number of arguments for 'echo' command"),
        ("PING a b", "-ERR wrong number of arguments"),
        ("SETEX a 1 b", "-ERR unknown command 'SETEX'"),
        ("RESET", "RESET"),
        ("CLIENT GETNAME", "null"),
        ("COMMAND COUNT", "17"),
    ] {
        assert_eq!(client.line(words), answer, "{words}");
    }
    let auth = client.line("AUTH x");
    assert!(auth.starts_with("-ERR AUTH <password> called without any password configured"));
    let info = client.line("INFO");
    for line in ["redis_version:", "loading:0", "role:master", "tollgate_version:"] {
        assert!(info.contains(line), "{line} is not in {info}");
    }
    assert!(client.line("CLIENT INFO").contains("name= "));
    assert_eq!(client.line("QUIT"), "OK");
    assert_eq!(client.rest(), "");
}

#[test]
fn the_second_version_of_the_protocol_has_no_maps_and_the_third_does() {
    let served = RespServer::new("");
    let mut client = served.client();
    let is_array = |value: &Value| matches!(value, Value::Array(values) if values.len() == 14);
    assert!(is_array(&client.ask(&["HELLO"])));
    assert!(is_array(&client.ask(&["HELLO", "2", "SETNAME", "me"])));
    let hello = client.ask(&["HELLO", "3"]);
    assert!(matches!(&hello, Value::Map(_)), "{hello:?}");
    assert!(hello.line().contains("proto 3"));
    assert_eq!(client.line("CLIENT GETNAME"), "me");
    assert!(matches!(client.ask(&["COMMAND", "DOCS", "cl.throttle"]), Value::Map(_)));
    assert_eq!(client.line("CL.THROTTLE u 15 30 60"), "0 16 15 -1 2");
    assert_eq!(client.line("RESET"), "RESET");
    assert!(is_array(&client.ask(&["HELLO"])));
    let Value::Array(all) = client.ask(&["COMMAND"]) else { panic!("no array") };
    assert_eq!(all.len(), 17);
    assert_eq!(client.ask(&["COMMAND", "INFO", "nope"]), Value::Array(vec![Value::Null]));
}

/// The replies to pipelined commands are in order.
#[test]
fn a_pipeline_is_answered_in_order() {
    let served =
        RespServer::new("limits: [{name: a, key: [user], rate: 1000/min, algorithm: gcra}]");
    let mut client = served.client();
    let mut sent = Vec::new();
    let mut expected = Vec::new();
    for round in 0..2000 {
        let text = format!("round-{round}");
        sent.extend(command(&["CL.THROTTLE", "k", "9999", "1", "3600", "1"]));
        expected.push(None);
        sent.extend(command(&["ECHO", &text]));
        expected.push(Some(text));
        match round % 3 {
            0 => sent.extend(command(&["TG.PEEK", "a", "1", "me"])),
            1 => sent.extend(command(&["CL.THROTTLE", "k", "x", "1", "3600"])),
            _ => sent.extend(b"PING \"a b\"\r\n"),
        }
        expected.push(Some(
            match round % 3 {
                0 => "0 1000 1000 -1 0",
                1 => "-Cell error: Store error: Couldn't parse as integer: x",
                _ => "a b",
            }
            .into(),
        ));
    }
    let mut writer = client.stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &sent));
    for (place, expected) in expected.into_iter().enumerate() {
        let answer = client.answer().line();
        let left = 9999 - place / 3;
        let throttled = format!("0 10000 {left} -1 ");
        match expected {
            Some(expected) => assert_eq!(answer, expected, "command {place}"),
            None => assert!(answer.starts_with(&throttled), "{answer} at {place}"),
        }
    }
    writing.join().unwrap().unwrap();
}

#[test]
fn requests_are_counted() {
    let served = RespServer::new("");
    let mut client = served.client();
    for _ in 0..3 {
        client.line("CL.THROTTLE k 1 1 3600");
    }
    client.line("CL.THROTTLE k 1 1");
    client.line("PING");
    let admin = TcpStream::connect(served.running().address(Front::Admin).unwrap()).unwrap();
    let mut admin = crate::http::Client(admin);
    admin.send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n");
    let body = admin.answer().body;
    for line in [
        "tollgate_requests_total{front=\"resp\",outcome=\"admitted\"} 2",
        "tollgate_requests_total{front=\"resp\",outcome=\"refused\"} 1",
        "tollgate_requests_total{front=\"resp\",outcome=\"invalid\"} 1",
        "tollgate_requests_total{front=\"resp\",outcome=\"ok\"} 1",
        "tollgate_decision_seconds_count{front=\"resp\"} 3",
    ] {
        assert!(body.contains(line), "{line} is not in {body}");
    }
}

#[test]
fn a_drain_ends_idle_connections() {
    let mut served = RespServer::new("drain: 5s");
    let mut clients: Vec<RespClient> = (0..8).map(|_| served.client()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.line("PING"), "PONG"));
    let address = served.address();
    let running = served.running.take().unwrap();
    let draining = std::thread::spawn(move || running.drain());
    // On a stop every connection is closed, and no new one is accepted.
    for client in clients {
        assert_eq!(client.rest(), "");
    }
    draining.join().unwrap();
    assert!(TcpStream::connect(address).is_err());
}
