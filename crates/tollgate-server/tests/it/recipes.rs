//! The recipes of `docs/recipes/` behave as their page says, each against its own server.

use crate::http::{Served, serve};
use socket2::{Domain, Socket, Type};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter of each kind of recipe, and its folder.
const LANGUAGES: [(&str, &str, &str); 3] =
    [("python3", "python", "py"), ("node", "node", "mjs"), ("sh", "shell", "sh")];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes")
}

fn server() -> Served {
    serve(&std::fs::read_to_string(folder().join("tollgate.yaml")).unwrap())
}

/// A recipe with the user name `it's "me"`, which must be escaped in all three languages.
fn recipe(language: usize, name: &str, address: SocketAddr) -> Command {
    let (program, place, extension) = LANGUAGES[language];
    let mut command = Command::new(program);
    command
        .arg(folder().join(place).join(format!("{name}.{extension}")))
        .arg("it's \"me\\")
        .env("TOLLGATE_URL", format!("http://{address}"))
        // A long timeout: a busy machine is not a failure.
        .env("TOLLGATE_TIMEOUT", "60")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NO_PROXY", "*")
        .env_remove("FAIL");
    command
}

/// Its standard output and standard error.
#[track_caller]
fn run(mut command: Command) -> (String, String) {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}\n{stderr}", output.status);
    (stdout, stderr)
}

fn checks(language: usize) {
    let served = server();
    let (output, errors) = run(recipe(language, "check", served.address));
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[..2], ["1: allowed", "2: allowed"], "{output}\n{errors}");
    let wait =
        lines[2].strip_prefix("3: refused, try again in ").and_then(|s| s.strip_suffix(" s"));
    let wait: u32 = wait.unwrap_or_else(|| panic!("{output}")).parse().unwrap();
    assert!((1..=1800).contains(&wait), "{output}");
    assert_eq!((lines.len(), errors.as_str()), (3, ""));
    let peek = r#"{"attributes": {"user": "it's \"me\\", "action": "view"}}"#;
    assert_eq!(served.post("/v1/peek", peek).status, 429, "it named another user");
}

/// No listener, and a listener that never answers.
fn fails(language: usize) {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    // Bound, so that no other process takes the port.
    let nobody = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    nobody.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let refusing = nobody.local_addr().unwrap().as_socket().unwrap();
    for (address, timeout) in [(silent.local_addr().unwrap(), "0.1"), (refusing, "60")] {
        for (choice, expected) in
            [("open", "1: allowed"), ("closed", "1: refused, try again in 1 s")]
        {
            let mut command = recipe(language, "check", address);
            command.env("FAIL", choice).env("TOLLGATE_TIMEOUT", timeout);
            let (output, errors) = run(command);
            assert_eq!(output.lines().next(), Some(expected), "{choice}: {output}");
            assert!(errors.starts_with("tollgate did not answer"), "{errors}");
        }
    }
}

fn waits(language: usize) {
    let served = server();
    let (output, errors) = run(recipe(language, "retry", served.address));
    assert_eq!(output, "1: sent\n2: sent\n3: sent\n100 at once: given up\n", "{errors}");
    let pace = served.node.gate.counts().into_iter().find(|(name, _)| &**name == "pace").unwrap().1;
    assert_eq!(pace.admitted, 3);
}

fn reserves(language: usize, failed: &str) {
    let served = server();
    let (output, errors) = run(recipe(language, "reserve", served.address));
    let mut lines: Vec<&str> = output.lines().collect();
    lines[..2].sort_unstable();
    assert_eq!(
        lines,
        ["HELLO", "charged 120, 880 left", failed, "refused: no wait will help"],
        "{errors}"
    );
    // The failed work was refunded at once; it did not expire.
    let peek = r#"{"attributes": {"user": "it's \"me\\", "action": "complete"}}"#;
    let answer = served.post("/v1/peek", peek).json();
    assert!(answer["limits"][0]["remaining"].as_u64().unwrap() >= 880, "{answer}");
}

macro_rules! recipes {
    ($($language:ident, $index:literal, $failed:literal;)*) => {$(
        mod $language {
            #[test]
            fn checks() {
                super::checks($index);
            }

            #[test]
            fn fails_open_or_closed() {
                super::fails($index);
            }

            #[test]
            fn waits() {
                super::waits($index);
            }

            #[test]
            fn reserves() {
                super::reserves($index, $failed);
            }
        }
    )*};
}

recipes! {
    python, 0, "nothing to answer; nothing charged";
    node, 1, "nothing to answer; nothing charged";
    shell, 2, "it failed; nothing charged";
}

#[test]
fn every_recipe_is_run_and_listed() {
    let page = std::fs::read_to_string(folder().join("README.md")).unwrap();
    for (_, place, extension) in LANGUAGES {
        let mut found: Vec<String> = std::fs::read_dir(folder().join(place))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        let expected = ["check", "reserve", "retry"].map(|name| format!("{name}.{extension}"));
        assert_eq!(found, expected);
        for name in found {
            assert!(page.contains(&format!("({place}/{name})")), "{name} is not in the page");
        }
    }
}
