//! Passwords.

use super::{RespClient, RespServer, Value};
use tollgate_server::config::{Config, ConfigError, ConfigErrorKind};
use tollgate_server::serve::{Server, StartError};

const NOAUTH: &str = "-NOAUTH Authentication required.";
const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.";

#[test]
fn nothing_is_answered_before_the_password() {
    let served = RespServer::new("resp: {password: hunter2}");
    let mut client = served.client();
    for words in
        ["PING", "CL.THROTTLE k 4 1 1", "INFO", "COMMAND", "CLIENT ID", "TG.CHECK a 0", "nonsense"]
    {
        assert_eq!(client.line(words), NOAUTH, "{words}");
    }
    assert!(client.line("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    assert_eq!(client.line("AUTH hunter1"), WRONG);
    assert_eq!(client.line("AUTH admin hunter2"), WRONG);
    assert_eq!(client.line("AUTH default hunter2"), "OK");
    assert_eq!(client.line("PING"), "PONG");
    assert_eq!(client.line("RESET"), "RESET");
    assert_eq!(client.line("PING"), NOAUTH);
    assert_eq!(client.line("HELLO 3 AUTH default nope"), WRONG);
    let hello = client.ask(&["HELLO", "3", "AUTH", "default", "hunter2", "SETNAME", "me"]);
    assert!(matches!(hello, Value::Map(_)), "{hello:?}");
    assert_eq!(client.line("CLIENT GETNAME"), "me");
}

#[test]
fn whoever_guesses_has_to_connect_again() {
    let served = RespServer::new("resp: {password: hunter2}");
    let mut client = served.client();
    for _ in 0..8 {
        assert_eq!(client.line("AUTH nope"), WRONG);
    }
    assert_eq!(client.rest(), "");
}

/// Password guesses are limited by address, since a new connection is free.
#[test]
fn an_address_waits_after_ten_guesses() {
    let served = RespServer::new("resp: {password: hunter2}");
    let guesses =
        ["AUTH nope", "AUTH default nope", "HELLO 3 AUTH default nope", "AUTH other hunter2"];
    let mut wrong = 0;
    for guess in guesses.into_iter().cycle().take(40) {
        // Each guess on a new connection: the address is limited.
        let said = served.client().line(guess);
        if said == WRONG {
            wrong += 1;
        } else {
            assert!(said.starts_with("-WRONGPASS too many wrong passwords from"), "{said}");
        }
    }
    // One more guess is allowed for each six seconds that the test took.
    assert!((10..=13).contains(&wrong), "{wrong}");
    let said = served.client().line("AUTH hunter2");
    assert!(said.starts_with("-WRONGPASS too many wrong passwords from"), "not told: {said}");
    let said = served.client().line("HELLO 3 AUTH default hunter2");
    assert!(said.starts_with("-WRONGPASS too many wrong passwords from"), "not told: {said}");
}

#[test]
fn the_password_clears_the_guesses() {
    let served = RespServer::new("resp: {password: hunter2}");
    for _ in 0..5 {
        for _ in 0..9 {
            assert_eq!(served.client().line("AUTH nope"), WRONG);
        }
        assert_eq!(served.client().line("AUTH hunter2"), "OK");
    }
}

/// Before the password, the length of a command is limited.
#[test]
fn a_stranger_gets_little_room() {
    let served = RespServer::new("resp: {password: hunter2}");
    for (bytes, why) in [
        (&b"*2\r\n$4\r\nAUTH\r\n$5000\r\n"[..], "invalid bulk length"),
        (b"*11\r\n", "invalid multibulk length"),
    ] {
        let mut client = served.client();
        client.send(bytes);
        assert_eq!(client.rest(), format!("-ERR Protocol error: {why}\r\n"));
    }
}

#[test]
fn a_reload_changes_the_password_for_those_who_come_later() {
    let served = RespServer::new("resp: {password: hunter2}");
    let mut before = served.client();
    assert_eq!(before.line("AUTH hunter2"), "OK");
    served.reload("resp: {password: hunter3}");
    assert_eq!(before.line("PING"), "PONG");
    let mut after = served.client();
    assert_eq!(after.line("AUTH hunter2"), WRONG);
    assert_eq!(after.line("AUTH hunter3"), "OK");
    served.reload("");
    assert_eq!(RespClient::connect(served.address()).line("PING"), "PONG");
}

#[test]
fn a_password_that_is_nowhere_keeps_the_node_from_starting() {
    let folder = std::env::temp_dir().join(format!("tollgate-resp-unset-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tollgate.yaml");
    let policy =
        "listen: {resp: '127.0.0.1:0'}\nresp: {password: {env: TOLLGATE_NOT_SET_ANYWHERE}}";
    std::fs::write(&file, policy).unwrap();
    let error = Server::start(Config::file(file)).unwrap_err();
    assert!(
        matches!(error, StartError::Config(ConfigError { kind: ConfigErrorKind::Secret(_), .. })),
        "{error}"
    );
    assert!(error.to_string().contains("TOLLGATE_NOT_SET_ANYWHERE"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
