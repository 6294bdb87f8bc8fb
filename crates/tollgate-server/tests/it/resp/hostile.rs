//! Hostile and mistaken clients.

use super::{RespServer, command};
use std::io::Write;
use std::thread;

#[test]
fn what_is_no_command_is_answered_and_ends_the_connection() {
    let served = RespServer::new("");
    let nested = b"*1\r\n".repeat(4096);
    let cases: [(&[u8], &str); 9] = [
        (b"*x\r\n", "invalid multibulk length"),
        (b"*1000000000\r\n", "invalid multibulk length"),
        (b"*1\r\n$1000000000\r\n", "invalid bulk length"),
        (b"*1\r\n$-5\r\n", "invalid bulk length"),
        (b"*1\r\n+PING\r\n", "expected '$', got '+'"),
        (b"*1\r\n$1\r\nab\r\n", "a bulk string goes on where it should end"),
        (&nested, "expected '$', got '*'"),
        (b"PING \"abc\r\n", "unbalanced quotes in request"),
        (&[b'a'; 20_000], "too big inline request"),
    ];
    for (bytes, why) in cases {
        let mut client = served.client();
        client.send(b"PING\r\n");
        client.send(bytes);
        // Commands before the error are answered, and commands after it are not.
        let _ = client.stream.write_all(b"PING\r\n");
        assert_eq!(client.rest(), format!("+PONG\r\n-ERR Protocol error: {why}\r\n"));
    }
    assert_eq!(served.client().line("PING"), "PONG");
}

/// A web page can make a browser send any bytes after an HTTP head.
#[test]
fn http_is_cut_off_at_its_head() {
    let served = RespServer::new("");
    for head in ["POST / HTTP/1.1\r\n", "Host: x\r\n", "host: x\r\n"] {
        let mut client = served.client();
        client.send(head.as_bytes());
        let _ = client.stream.write_all(b"\r\nCL.THROTTLE victim 0 1 3600\r\n");
        assert_eq!(client.rest(), "", "{head}");
    }
    assert_eq!(served.client().line("CL.THROTTLE victim 0 1 3600 0"), "0 1 1 -1 0");
}

#[test]
fn the_largest_argument_passes_and_one_more_byte_does_not() {
    let served = RespServer::new("");
    let mut client = served.client();
    let largest = "a".repeat(64 * 1024);
    assert_eq!(client.ask(&["ECHO", &largest]).line(), largest);
    assert!(client.ask(&["CL.THROTTLE", &largest, "4", "1", "1"]).line().starts_with("0 5 4"));
    client.send(format!("*2\r\n$4\r\nECHO\r\n${}\r\n", largest.len() + 1).as_bytes());
    assert_eq!(client.rest(), "-ERR Protocol error: invalid bulk length\r\n");
}

/// A client that sends and never reads is paused; other clients are not affected.
#[test]
fn a_client_that_does_not_read_holds_up_only_itself() {
    let served = RespServer::new("");
    let mut deaf = served.client();
    deaf.stream.set_write_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
    let commands = command(&["COMMAND"]).repeat(2000);
    // Once the reply buffers are full, the server reads no more, and this write fails.
    let refused = (0..10_000).any(|_| deaf.stream.write_all(&commands).is_err());
    assert!(refused, "the server read everything");
    assert_eq!(served.client().line("PING"), "PONG");
}

/// Endless commands have a memory limit, and do not affect other clients.
#[test]
fn parts_of_commands_have_an_end_together() {
    let served = RespServer::new("");
    let part = [b"*2\r\n$4\r\nECHO\r\n$65536\r\n".to_vec(), vec![b'a'; 60_000]].concat();
    let mut waiting = Vec::new();
    let mut told = 0;
    for _ in 0..1_200 {
        let mut client = served.client();
        let _ = client.stream.write_all(&part);
        waiting.push(client);
    }
    // Sixteen megabytes are some 280 of them on each worker; at least one later command is refused.
    let workers = thread::available_parallelism().map_or(1, usize::from);
    if workers <= 3 {
        for client in &mut waiting {
            client.stream.set_nonblocking(true).unwrap();
            told += usize::from(client.fill() > 0);
        }
        assert!(told > 0, "no client was refused");
    }
    assert_eq!(served.client().line("PING"), "PONG");
    let answer = served.client().ask(&["ECHO", &"a".repeat(500)]).line();
    assert_eq!(answer.len(), 500);
}

/// A truncated command is not run.
#[test]
fn a_half_closed_connection_is_answered_and_closed() {
    let served = RespServer::new("");
    let mut client = served.client();
    client.send(b"PING\r\n*2\r\n$4\r\nECHO\r\n$3\r\nab");
    assert_eq!(client.finish(), "+PONG\r\n");
}

#[test]
fn thousands_of_empty_commands_are_nothing() {
    let served = RespServer::new("");
    let mut client = served.client();
    client.send(&b"\r\n*0\r\n*-1\r\n  \r\n".repeat(5_000));
    assert_eq!(client.line("PING"), "PONG");
}

/// Parameters chosen by callers are not kept for ever, and ids remain for the policy.
#[test]
fn numbers_that_are_never_the_same_are_decided_all_the_same() {
    let served = RespServer::new("limits: [{name: a, rate: 5/min, algorithm: gcra}]");
    let mut client = served.client();
    let mut sent = Vec::new();
    for count in 1..=6_000 {
        sent.extend(command(&["CL.THROTTLE", "k", "99999", &count.to_string(), "1000", "1"]));
    }
    let mut writer = client.stream.try_clone().unwrap();
    let writing = thread::spawn(move || writer.write_all(&sent));
    for _ in 0..6_000 {
        assert!(client.answer().line().starts_with("0 100000 "));
    }
    writing.join().unwrap().unwrap();
    assert_eq!(client.line("TG.CHECK a 0"), "0 5 4 -1 12000");
}
