//! Paths in every spelling, sent to real servers directly and through the gateway.

mod servers;

use super::{Gateway, PATIENCE};
use crate::http::Client;
use servers::{Origins, ask};
use std::net::TcpStream;
use tollgate_policy::path::{ambiguity, normalise, readings};

/// Spellings of paths, most of them of `/login`.
const PATHS: &[&str] = &[
    // One reading, or two whose limits both apply.
    "/login",
    "/login/",
    "//login",
    "///login",
    "//h/login",
    "///h/login",
    "//u@h/login",
    "//h:80/login",
    "//[::1]/login",
    "//h/x/login",
    "//a/login",
    "/a//login",
    "/a/b//login",
    "/x/../login",
    "/x/./login",
    "/./login",
    "/../login",
    "/x/../../login",
    "/login/.",
    "/login/x/..",
    "/login/..",
    "/a/b/../login",
    "/login//",
    "/%6cogin",
    "/%6Cogin",
    "/LOGIN",
    "/%40me",
    "/@me",
    "/login;x=1",
    "/;x/login",
    "/login%3Bx",
    "/x;y/login",
    "/login%20",
    "/%25login",
    "/%256cogin",
    "/x/%252e%252e/login",
    "/%252flogin",
    "/login.",
    "/login..",
    "/login%2e",
    "/login%20.",
    "//h/login.",
    "/login/...",
    "/login?x=/../a",
    "/login%3fx",
    "/login%23x",
    "/%ff",
    "/%C3%A9",
    "/",
    "/x/..",
    "/.",
    "/http://h/login",
    // Dot segments and empty segments.
    "/x//../login",
    "/a//b/../../login",
    "/a/b//../login",
    "/x/..//login",
    "/x/.//login",
    "/x//./login",
    "//../login",
    "//h/x/../login",
    "//./login",
    "/.//login",
    "/x//%2e%2e/login",
    // Escaped dots.
    "/x/%2e%2e/login",
    "/x/.%2e/login",
    "/x/%2E./login",
    "/%2e/login",
    "/login/%2e",
    "/login/x/%2e%2e",
    // Escaped slashes.
    "/%2flogin",
    "/x%2flogin",
    "/a%2Fb%2flogin",
    "/x/..%2flogin",
    "/x%2f..%2flogin",
    "/login%2f",
    "/login%2f.",
    "/login%2f..%2f",
    "/%2f%2flogin",
    "/x%2f%2f..%2flogin",
    // Backslashes.
    "/x\\..\\login",
    "/\\login",
    "/\\h/login",
    "/x\\login",
    "/x/..\\login",
    "/login\\",
    "/x%5c..%5clogin",
    "/x%5clogin",
    // Parameters of dot segments.
    "/x/..;/login",
    "/x/..;a/login",
    "/.;/login",
    "/x/..%3b/login",
    // Control characters.
    "/login%00",
    "/login%00.png",
    "/log%0ain",
    "/login%0a",
    "/login%09",
    "/login%7f",
    // Invalid escapes.
    "/login%",
    "/login%2",
    "/%zzlogin",
    "/%u006cogin",
    "/%login",
    // Overlong encodings.
    "/x/%c0%ae%c0%ae/login",
    "/x%c0%aflogin",
    "/%c0%aflogin",
    "/x%e0%80%aflogin",
];

fn decoded(path: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), path.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| byte == b'%') {
            Some(byte) => {
                out.push(byte);
                rest = &after[2..];
            }
            None => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// If two servers serve different resources for a path, the path is ambiguous. Any other path is
/// served as one of its readings.
#[test]
fn servers_serve_what_limits_see() {
    let origins = Origins::start();
    let mut table = String::new();
    let mut wrong = Vec::new();
    for path in PATHS {
        let answers: Vec<_> = origins
            .all
            .iter()
            .map(|origin| (origin.name, ask(origin.address, path.as_bytes())))
            .collect();
        let shown = answers.iter().map(|(_, answer)| match answer {
            Ok(resource) => format!("`{resource}`"),
            Err(status) => status.clone(),
        });
        let shown: Vec<_> = shown.collect();
        let judged = if ambiguity(path).is_some() {
            "ambiguous".to_owned()
        } else {
            format!("`{}`", normalise(path))
        };
        table.push_str(&format!("| `{path}` | {} | {judged} |\n", shown.join(" | ")));
        let mut served: Vec<&String> =
            answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()).collect();
        served.sort();
        served.dedup();
        let mut known: Vec<String> =
            readings(path).unwrap_or_default().iter().map(|reading| decoded(reading)).collect();
        known.push(decoded(&normalise(path)));
        let is_seen = |resource: &&String| known.contains(resource);
        // After two slashes some servers read a host. Ordinary requests have them, so no rule
        // refuses them.
        if ambiguity(path).is_none() && !path.starts_with("//") && served.len() > 1 {
            wrong.push(format!("{path} is not ambiguous, and {answers:?} are served"));
        }
        if !served.iter().all(is_seen) {
            wrong.push(format!("{path}: {answers:?} are not all among {known:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{table}", wrong.join("\n"));
    assert!(table.contains("| `/x//../login` | `/login` | `/login` | `/x/login` |"), "{table}");
    assert!(
        table.contains("| `/login.` | 404 | 404 | 404 | 404 | 404 | 404 | `/login` |"),
        "{table}"
    );
    assert!(table.contains("| `//h/login` | 404 | 404 | 404 | `/login` |"), "{table}");
    println!("{table}");
}

/// A limit of zero on `/login` holds for every spelling and every server.
#[test]
fn no_spelling_gets_past_a_limit() {
    let origins = Origins::start();
    for origin in &origins.all {
        for ambiguous_paths in ["refuse", "match-all"] {
            let gateway = Gateway::new(&format!(
                "listen: {{gateway: {{address: '127.0.0.1:0', ambiguous_paths: {ambiguous_paths}}}}}\n\
                 upstream: http://{}\n\
                 limits: [{{name: login, match: {{path: [/login, /@me]}}, rate: 0/min}}]\n",
                origin.address
            ));
            for path in PATHS {
                for target in [(*path).to_owned(), format!("http://h{path}")] {
                    let answer = ask(gateway.address(), target.as_bytes());
                    let at = format!("{} with {ambiguous_paths}: {target}", origin.name);
                    assert!(
                        !matches!(answer.as_deref(), Ok("/login" | "/@me")),
                        "{at} gets past the limit"
                    );
                    if ambiguous_paths == "refuse" && ambiguity(path).is_some() {
                        assert_eq!(answer, Err("400".to_owned()), "{at}");
                    }
                }
            }
        }
    }
}

/// The answer names the reason, and the connection closes.
#[test]
fn an_ambiguous_path_is_answered_with_a_problem() {
    let backend = super::Backend::usual();
    let gateway = Gateway::before(&backend, "limits: [{name: a, rate: 9/min}]");
    let stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut client = Client(stream);
    client.send(b"GET /x//../login HTTP/1.1\r\nhost: h\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, 400, "{answer:?}");
    assert_eq!(answer.field("content-type"), Some("application/problem+json"));
    assert!(answer.body.contains("both dot segments and `//`"), "{answer:?}");
    assert!(client.is_ended());
    assert_eq!(backend.seen().len(), 0);
}
