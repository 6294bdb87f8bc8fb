//! Contracts of proxies that Debian does not package. The tests send the exact bytes of these
//! proxies to the program, and read the answers like the proxies.

use super::serve::process::{Folder, Process};
use std::io::{Read, Write};
use std::net::TcpStream;

const POLICY: &str = r#"
trusted_proxies: [127.0.0.0/8]
headers: [draft-11]
limits:
  - {name: per-client, match: {path: "/api/**"}, key: [ip], rate: 1/366d, algorithm: fixed-window}
  - {name: posts, match: {method: POST, path: /posts}, key: [host], rate: 1/366d, algorithm: fixed-window}
"#;

/// A proxy's action after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProxyAction {
    /// Lets the request pass.
    Pass,
    /// Sends this status to its client, with the headers and the body of the answer.
    Answer(u16),
}

/// Traefik and APISIX: 2xx lets the request pass, any other answer goes to the client.
fn by_status(status: u16) -> ProxyAction {
    if (200..300).contains(&status) { ProxyAction::Pass } else { ProxyAction::Answer(status) }
}

/// The request that the proxy sends, and its action.
type Row = (&'static str, ProxyAction);

/// Traefik's ForwardAuth: a GET without a body, the client's headers except hop-by-hop ones, and
/// five headers of Traefik.
const TRAEFIK: &[Row] = &[
    (
        "GET /v1/forward-auth HTTP/1.1\r\nHost: tollgate:8081\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\
         X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Host: shop.example\r\nX-Forwarded-Method: GET\r\n\
         X-Forwarded-Proto: https\r\nX-Forwarded-Uri: /api/a?b=1\r\nAccept-Encoding: gzip\r\n\r\n",
        ProxyAction::Pass,
    ),
    // The same client through another proxy in front of Traefik, which Traefik trusts.
    (
        "GET /v1/forward-auth HTTP/1.1\r\nHost: tollgate:8081\r\nUser-Agent: curl/8.5.0\r\n\
         X-Forwarded-For: 198.51.100.1, 203.0.113.7\r\nX-Forwarded-Host: shop.example\r\n\
         X-Forwarded-Method: DELETE\r\nX-Forwarded-Port: 443\r\nX-Forwarded-Proto: https\r\n\
         X-Forwarded-Server: edge-1\r\nX-Forwarded-Uri: /api/b\r\nX-Real-Ip: 203.0.113.7\r\n\r\n",
        ProxyAction::Answer(429),
    ),
    // A WebSocket request: Traefik drops `Connection` and `Upgrade`, and forwards the rest.
    (
        "GET /v1/forward-auth HTTP/1.1\r\nHost: tollgate:8081\r\nSec-Websocket-Key: x\r\n\
         Sec-Websocket-Version: 13\r\nX-Forwarded-For: 203.0.113.8\r\nX-Forwarded-Host: shop.example\r\n\
         X-Forwarded-Method: GET\r\nX-Forwarded-Proto: wss\r\nX-Forwarded-Uri: /api/socket\r\n\r\n",
        ProxyAction::Pass,
    ),
    // `preserveRequestMethod: true`, and a POST whose body Traefik keeps.
    (
        "POST /v1/forward-auth HTTP/1.1\r\nHost: tollgate:8081\r\nContent-Length: 0\r\n\
         Content-Type: application/json\r\nX-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Host: shop.example\r\n\
         X-Forwarded-Method: POST\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Uri: /posts\r\n\r\n",
        ProxyAction::Pass,
    ),
    (
        "POST /v1/forward-auth HTTP/1.1\r\nHost: tollgate:8081\r\nContent-Length: 0\r\n\
         X-Forwarded-For: 203.0.113.10\r\nX-Forwarded-Host: SHOP.example:443\r\n\
         X-Forwarded-Method: POST\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Uri: /posts\r\n\r\n",
        ProxyAction::Answer(429),
    ),
    // The address that Traefik calls has the status for denials, and names one limit.
    (
        "GET /v1/forward-auth?deny_status=403&policy=per-client HTTP/1.1\r\nHost: tollgate:8081\r\n\
         X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Host: shop.example\r\nX-Forwarded-Method: GET\r\n\
         X-Forwarded-Proto: https\r\nX-Forwarded-Uri: /api/a\r\n\r\n",
        ProxyAction::Answer(403),
    ),
];

/// APISIX's forward-auth: a GET with the same five headers, and the client headers that
/// `request_headers` names.
const APISIX: &[Row] = &[
    (
        "GET /v1/forward-auth HTTP/1.1\r\nHost: 127.0.0.1:8081\r\nUser-Agent: lua-resty-http/0.16.1 (Lua) ngx_lua/10021\r\n\
         X-Forwarded-Proto: http\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Host: shop.example\r\n\
         X-Forwarded-Uri: /api/a\r\nX-Forwarded-For: 203.0.113.20\r\n\r\n",
        ProxyAction::Pass,
    ),
    (
        "GET /v1/forward-auth HTTP/1.1\r\nHost: 127.0.0.1:8081\r\nUser-Agent: lua-resty-http/0.16.1 (Lua) ngx_lua/10021\r\n\
         X-Forwarded-Proto: http\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Host: shop.example\r\n\
         X-Forwarded-Uri: /api/a\r\nX-Forwarded-For: 203.0.113.20\r\nAuthorization: Basic eA==\r\n\r\n",
        ProxyAction::Answer(429),
    ),
];

/// Kong's pre-function of `docs/forward-auth/README.md`: a call of the check API.
fn kong(ip: &str, method: &str, path: &str) -> String {
    let body = format!(
        r#"{{"attributes":{{"ip":"{ip}","method":"{method}","path":"{path}","host":"kong.example"}}}}"#
    );
    format!(
        "POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1:8081\r\nUser-Agent: lua-resty-http/0.17.1 (Lua) ngx_lua/10025\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

struct Reply {
    status: u16,
    head: String,
    body: String,
}

/// Sends the bytes on a persistent connection, as proxies do.
fn ask(stream: &mut TcpStream, request: &str) -> Reply {
    stream.write_all(request.as_bytes()).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head
        .split("content-length: ")
        .nth(1)
        .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head, body: String::from_utf8(body).unwrap() }
}

fn started(name: &str) -> (Folder, Process, TcpStream) {
    let folder = Folder::with(name, POLICY);
    let listen = ["serve", "--listen", "http=127.0.0.1:0", "--listen", "admin=127.0.0.1:0"];
    let mut process = Process::start(&folder.0, &listen, &[]);
    let stream = TcpStream::connect(process.address("http")).unwrap();
    (folder, process, stream)
}

/// The refusal that the client of a proxy gets.
#[track_caller]
fn is_told(reply: &Reply, at: &str) {
    assert!(reply.head.contains("\r\nretry-after: "), "{at}: {}", reply.head);
    assert!(reply.head.contains("\r\nratelimit: "), "{at}: {}", reply.head);
    assert!(!reply.head.contains("\r\nlocation: "), "{at}: Traefik would rewrite it");
}

fn follow(name: &str, rows: &[Row]) {
    let (_folder, _process, mut stream) = started(name);
    for (request, does) in rows {
        let reply = ask(&mut stream, request);
        assert_eq!(by_status(reply.status), *does, "{request}\n{}{}", reply.head, reply.body);
        match does {
            ProxyAction::Pass => assert_eq!(reply.body, "", "{request}"),
            ProxyAction::Answer(_) => is_told(&reply, request),
        }
    }
}

#[test]
fn traefik() {
    follow("contract-traefik", TRAEFIK);
}

#[test]
fn apisix() {
    follow("contract-apisix", APISIX);
}

/// A 200 lets the request pass; 429 and 503 reach the client with the headers. The pre-function
/// decides about other statuses.
#[test]
fn kong_by_the_check_api() {
    let (_folder, _process, mut stream) = started("contract-kong");
    for (ip, method, path, status) in [
        ("203.0.113.30", "GET", "/api/a", 200),
        ("203.0.113.30", "GET", "/api/b", 429),
        ("203.0.113.31", "GET", "/api/a", 200),
        ("203.0.113.31", "POST", "/posts", 200),
        ("203.0.113.32", "POST", "/posts", 429),
        ("203.0.113.32", "GET", "/free", 200),
    ] {
        let request = kong(ip, method, path);
        let reply = ask(&mut stream, &request);
        assert_eq!(reply.status, status, "{request}\n{}", reply.body);
        if status == 429 {
            is_told(&reply, &request);
            assert!(reply.body.contains("\"retry_after\":"), "{}", reply.body);
        }
    }
    // An invalid call gets another status, and an explanation.
    let wrong = kong("nowhere", "GET", "/api/a");
    let reply = ask(&mut stream, &wrong);
    assert_eq!(reply.status, 400, "{}", reply.body);
    assert!(reply.body.contains("\"field\":"), "{}", reply.body);
}

/// The page contains the contracts of these tables.
#[test]
fn the_page_has_them_all() {
    let page = include_str!("../../../../docs/forward-auth/README.md");
    for part in ["\n## Traefik\n", "\n## APISIX\n", "\n## Kong\n"] {
        assert!(page.contains(part), "{part}");
    }
    let kong = page.split("\n## Kong\n").nth(1).unwrap();
    for word in ["pre-function", "/v1/check", "application/json", "Retry-After", "ratelimit"] {
        assert!(kong.contains(word), "{word}");
    }
}
