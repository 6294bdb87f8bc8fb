//! Forward-auth: the calls of proxies and their answers, and real proxies.

mod hostile;
mod kong;
mod program;
mod proxies;
mod shed;
mod tokens;

use crate::http::{Answer, Served, serve};

const TRUSTING: &str = r#"
trusted_proxies: [127.0.0.0/8]
headers: [draft-11]
identity: {user: header.x-user-id}
limits:
  - {name: per-user, key: [user], rate: 2/366d, algorithm: gcra}
  - {name: posts, match: {method: POST, path: "/posts/**"}, key: [host], rate: 1/366d, algorithm: gcra}
  - {name: by, match: {path: /by}, keys: [[query.q], [ip]], rate: 1/366d, algorithm: gcra}
  - {name: nothing, match: {path: /nothing}, rate: 0/min}
"#;

/// A call with these header lines.
fn ask(served: &Served, method: &str, parameters: &str, lines: &str) -> Answer {
    let mut client = served.client();
    let question =
        format!("{method} /v1/forward-auth{parameters} HTTP/1.1\r\nhost: tollgate\r\n{lines}\r\n");
    client.send(question.as_bytes());
    client.answer()
}

/// Method, parameters, header lines, status, decision, and whether there is a `Retry-After`.
type Row = (&'static str, &'static str, &'static str, u16, &'static str, bool);

const GET: &str = "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\n";
const NOTHING: &str = "x-forwarded-method: GET\r\nx-forwarded-uri: /nothing\r\n";

const ROWS: &[Row] = &[
    (
        "GET",
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-user-id: 1\r\n",
        200,
        "allow",
        false,
    ),
    (
        "HEAD",
        "",
        "x-original-method: GET\r\nx-original-uri: /\r\nx-user-id: 1\r\n",
        200,
        "allow",
        false,
    ),
    (
        "POST",
        "",
        "x-original-method: GET\r\nx-original-url: http://h/\r\nx-user-id: 1\r\n",
        429,
        "deny",
        true,
    ),
    (
        "GET",
        "?deny_status=403",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-user-id: 1\r\n",
        403,
        "deny",
        true,
    ),
    (
        "GET",
        "?deny_status=401",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-user-id: 1\r\n",
        401,
        "deny",
        true,
    ),
    (
        "GET",
        "?cost=3",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-user-id: 2\r\n",
        429,
        "deny",
        false,
    ),
    ("GET", "", NOTHING, 429, "deny", false),
    // Only some limits.
    ("GET", "?policy=per-user", NOTHING, 200, "allow", false),
    ("GET", "?policy=per-user&policy=nothing", NOTHING, 429, "deny", false),
    ("GET", "?policy=per%2Duser", NOTHING, 200, "allow", false),
    (
        "GET",
        "?policy=by",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /by?q=1\r\n",
        200,
        "allow",
        false,
    ),
    (
        "GET",
        "?policy=by/query.q",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /by?q=2\r\n",
        200,
        "allow",
        false,
    ),
    (
        "GET",
        "?policy=by",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /by?q=3\r\n",
        429,
        "deny",
        true,
    ),
    // The client's host, method and path count, not those of the call.
    (
        "GET",
        "",
        "x-forwarded-method: POST\r\nx-forwarded-uri: /a/../posts/1\r\nx-forwarded-host: h:1\r\n",
        200,
        "allow",
        false,
    ),
    (
        "GET",
        "",
        "x-forwarded-method: POST\r\nx-forwarded-uri: /%70osts/2\r\nx-forwarded-host: H\r\n",
        429,
        "deny",
        true,
    ),
    (
        "GET",
        "",
        "x-forwarded-method: POST\r\nx-forwarded-uri: /posts/2\r\nx-forwarded-host: other\r\n",
        200,
        "allow",
        false,
    ),
    // Targets without a path.
    (
        "GET",
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: http://h\r\nx-user-id: 1\r\n",
        429,
        "deny",
        true,
    ),
    (
        "GET",
        "",
        "x-forwarded-method: OPTIONS\r\nx-forwarded-uri: *\r\nx-user-id: 1\r\n",
        429,
        "deny",
        true,
    ),
    // Characters that a URI cannot have are escaped.
    ("GET", "", "x-forwarded-method: GET\r\nx-forwarded-uri: /a|b\"<>{}\r\n", 200, "allow", false),
    ("GET", "", "x-forwarded-method: GET\r\nx-forwarded-uri: /\u{e9}\r\n", 200, "allow", false),
    // One path in several spellings.
    (
        "GET",
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /./x/../nothing?a\r\n",
        429,
        "deny",
        false,
    ),
    ("GET", "", "x-forwarded-method: GET\r\nx-forwarded-uri: /%6eothing\r\n", 429, "deny", false),
    // Some services cut a segment at `;`, so the limits of both readings apply.
    ("GET", "", "x-forwarded-method: GET\r\nx-forwarded-uri: /nothing;x\r\n", 429, "deny", false),
    // Services may read this as another path.
    ("GET", "", "x-forwarded-method: GET\r\nx-forwarded-uri: /nothing/\r\n", 200, "allow", false),
    (
        "GET",
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /x%2f..%2fnothing\r\n",
        400,
        "deny",
        false,
    ),
    (
        "GET",
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /nothing%23x\r\n",
        200,
        "allow",
        false,
    ),
    // Some servers cut a path at `#`, so such paths are refused.
    ("GET", "", "x-forwarded-method: GET\r\nx-forwarded-uri: /nothing#0\r\n", 400, "deny", false),
    ("GET", "", "x-forwarded-method: GET\r\nx-forwarded-uri: /?a#b\r\n", 400, "deny", false),
    (
        "GET",
        "",
        "x-original-method: GET\r\nx-original-url: http://h/x#/nothing\r\n",
        400,
        "deny",
        false,
    ),
    (
        "GET",
        "?deny_status=403",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /#\r\n",
        403,
        "deny",
        false,
    ),
    // So is a header that some servers confuse with a counted one.
    (
        "GET",
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx_user_id: 7\r\n",
        400,
        "deny",
        false,
    ),
    (
        "GET",
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-user-id: 7\r\nx.user.id: 8\r\n",
        400,
        "deny",
        false,
    ),
    (
        "GET",
        "?deny_status=403",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-user_id: 7\r\n",
        403,
        "deny",
        false,
    ),
    (
        "GET",
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx_other: 7\r\n",
        200,
        "allow",
        false,
    ),
    // The client's own query, which Caddy appends, is ignored.
    (
        "GET",
        "?cost=0&policy=per-user&a=b",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /nothing?cost=0&policy=per-user&a=b\r\n",
        429,
        "deny",
        false,
    ),
    // A proxy must not append the client's query to parameters.
    (
        "GET",
        "?cost=2&a=b",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /nothing?a=b\r\n",
        403,
        "misconfigured",
        false,
    ),
    // Invalid calls.
    ("GET", "", "", 403, "misconfigured", false),
    ("GET", "", "x-forwarded-method: GET\r\n", 403, "misconfigured", false),
    ("GET", "", "x-forwarded-uri: /\r\n", 403, "misconfigured", false),
    (
        "GET",
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: h:80\r\n",
        403,
        "misconfigured",
        false,
    ),
    ("GET", "", "x-forwarded-method: \r\nx-forwarded-uri: /\r\n", 403, "misconfigured", false),
    ("GET", "", "x-forwarded-method: G T\r\nx-forwarded-uri: /\r\n", 403, "misconfigured", false),
    ("GET", "?policy=other", GET, 403, "misconfigured", false),
    ("GET", "?policy=", GET, 403, "misconfigured", false),
    ("GET", "?policies=by", GET, 403, "misconfigured", false),
    ("GET", "?deny_status=200", GET, 403, "misconfigured", false),
    ("GET", "?cost=-1", GET, 403, "misconfigured", false),
    ("GET", "?cost=99999999999999999999999", GET, 403, "misconfigured", false),
];

#[test]
fn questions_are_answered() {
    let served = serve(TRUSTING);
    for (method, parameters, lines, status, decision, waits) in ROWS {
        let at = format!("{method} {parameters} {lines:?}");
        let answer = match *method {
            // The body is ignored, whatever its length.
            "HEAD" => {
                let mut client = served.client();
                let head = format!(
                    "HEAD /v1/forward-auth HTTP/1.1\r\nhost: t\r\nconnection: close\r\n{lines}\r\n"
                );
                client.send(head.as_bytes());
                client.head()
            }
            method => ask(&served, method, parameters, lines),
        };
        assert_eq!(answer.status, *status, "{at}: {answer:?}");
        assert_eq!(answer.field("x-tollgate-decision"), Some(*decision), "{at}");
        assert_eq!(answer.field("retry-after").is_some(), *waits, "{at}");
        assert_eq!(answer.field("cache-control"), Some("no-store"), "{at}");
        if *decision == "allow" {
            assert_eq!(answer.body, "", "{at}");
        }
        let is_problem = answer.field("content-type") == Some("application/problem+json");
        assert_eq!(is_problem, matches!(*status, 429 | 400), "{at}: {answer:?}");
    }
    let asked = ask(
        &served,
        "GET",
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-user-id: 9\r\n",
    );
    assert_eq!(asked.field("ratelimit-policy"), Some("\"per-user\";q=2;w=31622400"));
}

/// Header lines, more header lines, the reason, and the detail of the problem.
const AMBIGUOUS: &[(&str, &str, &str, &str)] = &[
    (
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /#x\r\n",
        "fragment",
        "the target has a fragment",
    ),
    (
        "",
        "x-forwarded-method: CONNECT\r\nx-forwarded-uri: h:80\r\n",
        "connect",
        "CONNECT opens a tunnel, whose requests are not counted",
    ),
    (GET, "x_user_id: 7\r\n", "alias", "the header x_user_id looks like one that counts"),
    (GET, "x-original-uri: /nothing\r\n", "target", "two headers name different targets"),
    (GET, "x-original-url: http://h/nothing\r\n", "target", "two headers name different targets"),
    (GET, "x-forwarded-uri: /nothing\r\n", "target", "two headers name different targets"),
    (GET, "x-original-method: POST\r\n", "method", "two headers name different methods"),
    (
        GET,
        "x-forwarded-host: a\r\nx-forwarded-host: b\r\n",
        "host",
        "two headers name different hosts",
    ),
    (
        GET,
        "x-forwarded-host: a\r\nx-original-url: http://b/\r\n",
        "host",
        "two headers name different hosts",
    ),
    (
        GET,
        "x-http-method-override: DELETE\r\n",
        "override",
        "the header x-http-method-override differs from the request",
    ),
    (
        GET,
        "x_http_method: PUT\r\n",
        "override",
        "the header x_http_method differs from the request",
    ),
    (
        GET,
        "x-rewrite-url: /nothing\r\n",
        "override",
        "the header x-rewrite-url differs from the request",
    ),
    (GET, "x-user-id: 1\r\nx-user-id: 2\r\n", "header", "the header `x-user-id` has two values"),
    (
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /by?q=1&q=2\r\n",
        "query",
        "the query parameter `q` has two values",
    ),
    (
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /x//../nothing\r\n",
        "path",
        "servers read this path in more than one way: it has both dot segments and `//`",
    ),
    (
        "",
        "x-forwarded-method: GET\r\nx-forwarded-uri: /x\\..\\nothing\r\n",
        "path",
        "servers read this path in more than one way: it has a backslash",
    ),
];

#[test]
fn what_could_be_read_in_two_ways_says_so() {
    let served = serve(TRUSTING);
    for (first, more, reason, detail) in AMBIGUOUS.iter().copied() {
        let lines = &*format!("{first}{more}");
        let plain = ask(&served, "GET", "", lines);
        assert_eq!((plain.status, plain.field("x-tollgate-reason")), (400, Some(reason)));
        assert!(plain.body.contains(&format!("\"detail\":\"{detail}\"")), "{}", plain.body);
        let other = ask(&served, "GET", "?deny_status=401", lines);
        assert_eq!((other.status, other.field("x-tollgate-reason")), (401, Some(reason)));
        assert_eq!(other.body, "");
    }
}

/// Equal duplicates of a header count once.
#[test]
fn what_agrees_is_one() {
    let served = serve(TRUSTING);
    for more in [
        "x-original-uri: /\r\n",
        "x-original-url: http://h/\r\nx-forwarded-host: H\r\n",
        "x-original-method: GET\r\n",
        "x-forwarded-uri: /\r\n",
        "x-http-method-override: get\r\nx-rewrite-url: /\r\n",
        "x-user-id: 7\r\nx-user-id: 7\r\n",
    ] {
        let answer = ask(&served, "GET", "", &format!("{GET}{more}"));
        assert_eq!(answer.status, 200, "{more}: {answer:?}");
    }
    // A target that is not a path is refused.
    let host = "x-forwarded-method: GET\r\nx-forwarded-uri: nothing\r\n";
    assert_eq!(ask(&served, "GET", "", host).field("x-tollgate-decision"), Some("misconfigured"));
}

/// With `match-all` the limits of every reading apply; with `pass` override headers are ignored.
#[test]
fn a_listener_may_accept_both() {
    let listen = "listen: {http: {address: '127.0.0.1:0', ambiguous_paths: match-all, override_headers: pass}}";
    let served = serve(&format!("{listen}\n{TRUSTING}"));
    for (target, status) in [("/x//../nothing", 429), ("/x%2F..%2Fnothing", 429), ("/a%2Fb", 200)] {
        let lines = format!("x-forwarded-method: GET\r\nx-forwarded-uri: {target}\r\n");
        assert_eq!(ask(&served, "GET", "", &lines).status, status, "{target}");
    }
    let lines = format!("{GET}x-http-method-override: DELETE\r\n");
    assert_eq!(ask(&served, "GET", "", &lines).status, 200);
}

#[test]
fn nobody_is_trusted_by_default() {
    let served = serve("limits: [{name: a, rate: 0/min}]");
    let answer = ask(&served, "GET", "", GET);
    assert_eq!((answer.status, answer.field("x-tollgate-decision")), (403, Some("misconfigured")));
    assert!(answer.body.contains("trusted_proxies"), "{}", answer.body);
}

/// Candidates and limits of shedders cannot be named by callers.
#[test]
fn limits_of_the_programs_own_cannot_be_named() {
    let served = serve(
        "trusted_proxies: [127.0.0.0/8]
limits: [{name: all, rate: 9/h, candidate: {rate: 5/h}}]
classes: [{name: a, match: {path: /a}}, {name: b, default: true}]
shed: {fleet: {capacity: 10, reserve: {a: 20%}}, adaptive: {}}
",
    );
    for name in ["all//candidate", "all/", "shed", "shed/fleet", "shed/fleet/b", "shed/adaptive"] {
        let answer = ask(&served, "GET", &format!("?policy={name}"), GET);
        let told = (answer.status, answer.field("x-tollgate-decision"));
        assert_eq!(told, (403, Some("misconfigured")), "{name}");
    }
    assert_eq!(ask(&served, "GET", "?policy=all", GET).status, 200);
}

#[test]
fn a_trusted_proxy_names_the_client() {
    let served =
        serve("trusted_proxies: [127.0.0.0/8]\nlimits: [{name: a, key: [ip], rate: 1/366d}]");
    for (client, status) in
        [("203.0.113.7", 200), ("1.2.3.4, 203.0.113.7", 429), ("203.0.113.8", 200)]
    {
        let answer = ask(&served, "GET", "", &format!("{GET}x-forwarded-for: {client}\r\n"));
        assert_eq!(answer.status, status, "{client}");
    }
}

/// The call of Traefik's ForwardAuth: a GET with the client's headers, and five headers of Traefik.
#[test]
fn traefik_is_understood() {
    let readme = include_str!("../../../../../docs/forward-auth/README.md");
    let traefik = readme.split("\n## Traefik").nth(1).unwrap();
    assert!(traefik.contains("address: \"http://127.0.0.1:8081/v1/forward-auth\""));
    let served = serve(TRUSTING);
    let question = |user: &str| {
        let lines = format!(
            "user-agent: curl/8.0\r\naccept: */*\r\nx-user-id: {user}\r\nx-forwarded-method: POST\r\n\
             x-forwarded-proto: https\r\nx-forwarded-host: shop.example\r\nx-forwarded-uri: /a?b=1\r\n\
             x-forwarded-for: 203.0.113.7\r\nx-forwarded-port: 443\r\nx-forwarded-server: edge\r\naccept-encoding: gzip\r\n"
        );
        ask(&served, "GET", "", &lines)
    };
    for _ in 0..2 {
        let allowed = question("traefik");
        assert_eq!((allowed.status, &*allowed.body), (200, ""), "{allowed:?}");
    }
    // Traefik sends this answer to the client unchanged.
    let denied = question("traefik");
    assert_eq!(denied.status, 429);
    assert_eq!(denied.field("content-type"), Some("application/problem+json"));
    assert!(denied.field("retry-after").is_some() && denied.field("ratelimit").is_some());
    assert_eq!(question("other").status, 200);
}

/// A token that is valid until the year 2100; its subject is 42.
const TOKEN: &str = include_str!("../../../../tollgate-tower/src/token/tests/rs256.txt");
const KEY: &str = include_str!("../../../../tollgate-tower/src/token/tests/rsa.pem");

#[test]
fn claims_count_only_when_verified() {
    let file = "trusted_proxies: [127.0.0.0/8]\nidentity: {user: jwt.sub}\njwt: {keys: k, algorithms: RS256}
limits: [{name: a, key: [user], rate: 1/366d, on_missing: refuse}]";
    let served = serve(file);
    let compiled = tollgate_policy::compile(file.as_bytes()).unwrap();
    let jwt = compiled.settings.jwt.unwrap();
    let tokens = tollgate_tower::Verifier::new(&jwt, KEY.as_bytes()).unwrap();
    served.node.set_tokens(Some(tokens.into()));
    let status = |token: &str| {
        let answer = ask(&served, "GET", "", &format!("{GET}authorization: Bearer {token}\r\n"));
        (answer.status, answer.field("retry-after").is_some())
    };
    let missing = (429, false);
    assert_eq!(status("eyJhbGciOiJub25lIn0.eyJzdWIiOiI0MyJ9."), missing, "unsigned");
    assert_eq!(status(&TOKEN[..TOKEN.len() - 4]), missing, "half signed");
    assert_eq!(status(TOKEN), (200, false));
    assert_eq!(status(TOKEN), (429, true), "the same user again");
}
