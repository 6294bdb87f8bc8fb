//! The replies do not depend on how the bytes are split.

use super::{RespServer, command};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::io::Write;

/// A conversation, usually with an invalid command at its end.
fn conversation() -> impl Strategy<Value = Vec<u8>> {
    let said = prop_oneof![
        Just(b"PING\r\n".to_vec()),
        Just(b"ECHO \"a\\x0ab\"\n".to_vec()),
        Just(command(&["ECHO", "a\r\nb"])),
        Just(command(&["CL.THROTTLE", "key", "4", "1", "86400", "0"])),
        Just(command(&["TG.PEEK", "a", "1", "me", "3"])),
        Just(command(&["HELLO", "3"])),
        Just(command(&["COMMAND", "INFO", "ping"])),
        Just(command(&["NOTHING", "of", "the", "kind"])),
        Just(b"*0\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
    ];
    let last = prop_oneof![
        Just(Vec::new()),
        Just(b"QUIT\r\nPING\r\n".to_vec()),
        Just(b"*1\r\n$3\r\nabcd".to_vec()),
        Just(b"*2\r\n$4\r\nECHO\r\n$5\r\nab".to_vec()),
        Just(b"*1\r\n:5\r\nPING\r\n".to_vec()),
    ];
    (prop::collection::vec(said, 0..12), last)
        .prop_map(|(said, last)| [said.concat(), last].concat())
}

/// The replies without the connection number in the reply to `HELLO`.
fn without_id(answers: &str) -> String {
    let parts = answers.split("$2\r\nid\r\n:").enumerate();
    parts
        .map(|(n, part)| if n > 0 { part.trim_start_matches(char::is_numeric) } else { part })
        .collect()
}

#[test]
fn answers_do_not_depend_on_where_the_bytes_are_cut() {
    let served = RespServer::new("limits: [{name: a, key: [user], rate: 10/min, algorithm: gcra}]");
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..8);
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    runner
        .run(&(conversation(), cuts), |(bytes, cuts)| {
            let mut whole = served.client();
            whole.send(&bytes);
            let expected = without_id(&whole.finish());
            let mut pieces = served.client();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let mut from = 0;
            for cut in cuts {
                // The server may already have closed the connection.
                let _ = pieces.stream.write_all(&bytes[from..cut]);
                from = cut;
                std::thread::yield_now();
            }
            prop_assert_eq!(without_id(&pieces.finish()), expected);
            Ok(())
        })
        .unwrap();
}

/// Byte by byte.
#[test]
fn a_conversation_byte_by_byte() {
    let served = RespServer::new("");
    let bytes = [
        command(&["ECHO", "a\r\nb"]),
        b"PING \"x\\ty\"\r\n".to_vec(),
        command(&["CL.THROTTLE", "key", "4", "1", "86400", "0"]),
    ]
    .concat();
    let mut client = served.client();
    for byte in &bytes {
        client.send(std::slice::from_ref(byte));
    }
    let expected = "$4\r\na\r\nb\r\n$3\r\nx\ty\r\n*5\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n";
    assert_eq!(client.finish(), expected);
}
