//! Searches for secrets, an API key and the store's password, in every output. These are the store,
//! the log at level trace, metrics, traces, answers, errors, the audit log, and the output of
//! commands.

use super::run;
use super::serve::process::{Folder, Process, get, post};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use tollgate_faults::redis::Redis;

const KEY: &str = "marker-api-key-5f3759df";
const PASSWORD: &str = "marker-redis-password-0x1337";
const TOKEN: &str = "marker-admin-token-deadbeef";

/// The secrets that were found, and where.
#[derive(Default)]
struct Search(Vec<String>);

impl Search {
    /// Searches a text for every secret.
    fn look(&mut self, place: &str, text: &[u8]) {
        for secret in [KEY, PASSWORD, TOKEN] {
            if text.windows(secret.len()).any(|window| window == secret.as_bytes()) {
                let text = String::from_utf8_lossy(text).chars().take(400).collect::<String>();
                self.0.push(format!("{secret} in {place}: {text}"));
            }
        }
    }
}

/// A collector that keeps all batches.
fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let taken = Arc::new(Mutex::new(Vec::new()));
    let keeps = taken.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let keeps = keeps.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                loop {
                    let mut head = String::new();
                    while !head.ends_with("\r\n\r\n") {
                        if reader.read_line(&mut head).unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let lower = head.to_lowercase();
                    let length =
                        lower.lines().find_map(|line| line.strip_prefix("content-length: "));
                    let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
                    reader.read_exact(&mut body).unwrap();
                    keeps.lock().unwrap().extend([head.as_bytes(), &body].concat());
                    reader
                        .get_mut()
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                        .unwrap();
                }
            });
        }
    });
    (endpoint, taken)
}

fn policy(redis: &Redis) -> String {
    format!(
        "listen: {{http: '127.0.0.1:0', admin: '127.0.0.1:0'}}
store: {{redis: {{url: 'redis://:{PASSWORD}@127.0.0.1:{}/0', deadline: 5s}}}}
admin: {{token: {TOKEN}, audit: {{file: audit.jsonl}}}}
limits:
  - {{name: key, key: [api_key], rate: 3/h, algorithm: sliding-log, penalty: {{after: 2, block: 1m, max: 1h}}}}
  - {{name: user, key: [user], rate: 100/h, on_store_failure: closed}}
",
        redis.port()
    )
}

/// All calls of clients and operators, valid and invalid.
fn use_it(http: &str, admin: &str, search: &mut Search) {
    let attributes = format!("{{\"api_key\": \"{KEY}\", \"user\": \"u\"}}");
    let bodies = [
        format!("{{\"attributes\": {attributes}}}"),
        format!("{{\"attributes\": {attributes}, \"ttl\": \"30s\"}}"),
        // Requests with another error, or with an error in the key itself.
        format!("{{\"attributes\": {attributes}, \"cost\": -1}}"),
        format!("{{\"attributes\": {attributes}, \"unknown\": 1}}"),
        format!("{{\"attributes\": {{\"api_key\": \"{KEY}"),
        format!("{{\"attributes\": {{\"api_key\": [\"{KEY}\"]}}}}"),
        format!("{{\"attributes\": {{\"api_key\": {{\"{KEY}\": 1}}}}}}"),
        format!("{{\"attributes\": {{\"api_key\": \"{KEY}\", \"api_key\": \"{KEY}\"}}}}"),
        format!("{{\"attributes\": {{\"api_key\": \"{KEY}{}\"}}}}", "x".repeat(5_000)),
        format!("{{\"attributes\": {{\"api_key\": \"{KEY}\\ud800\"}}}}"),
        format!("{{\"attributes\": \"{KEY}\"}}"),
        format!("{{\"reservation\": \"{KEY}\", \"cost\": 1}}"),
    ];
    for call in ["check", "check", "check", "peek", "reserve", "settle", "cancel"] {
        for body in &bodies {
            let (status, answer) = post(http, &format!("/v1/{call}"), body);
            assert!(status < 600);
            search.look(&format!("{call} {status}"), answer.as_bytes());
        }
    }
    for path in ["/readyz", "/healthz", "/metrics", "/v1/limits", "/v1/config"] {
        search.look(path, get(admin, path).1.as_bytes());
    }
}

/// A call of the admin API, with its token.
fn manage(admin: &str, call: &str, body: &str) -> (u16, String) {
    let mut stream = std::net::TcpStream::connect(admin).unwrap();
    let length = body.len();
    let text = format!(
        "POST /v1/{call} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

/// Every key and every value in Redis.
fn look_in_store(redis: &Redis, search: &mut Search) {
    let client = redis::Client::open(format!("redis://:{PASSWORD}@127.0.0.1:{}/0", redis.port()));
    let mut connection = client.unwrap().get_connection().unwrap();
    let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    assert!(!keys.is_empty(), "something was counted");
    for key in keys {
        search.look("a key of the store", &key);
        let value: Vec<u8> = redis::cmd("GET").arg(&key).query(&mut connection).unwrap();
        search.look("a value of the store", &value);
    }
    let slow: redis::Value = redis::cmd("INFO").arg("everything").query(&mut connection).unwrap();
    search.look("INFO", format!("{slow:?}").as_bytes());
}

#[test]
fn nothing_secret_is_anywhere() {
    let mut search = Search::default();
    let mut redis = Redis::listen(&["--requirepass", PASSWORD]);
    let (endpoint, taken) = collector();
    let folder = Folder::with("secrets", &policy(&redis));
    let variables =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint), ("OTEL_BSP_SCHEDULE_DELAY", "50")];
    let mut process = Process::start(&folder.0, &["serve", "--log", "trace"], &variables);
    let (http, admin) = (process.address("http"), process.address("admin"));
    use_it(&http, &admin, &mut search);
    look_in_store(&redis, &mut search);
    let target = format!("{{\"attributes\": {{\"api_key\": \"{KEY}\"}}}}");
    let block = format!("{{\"attributes\": {{\"api_key\": \"{KEY}\"}}, \"for\": \"1m\"}}");
    for (call, body) in [("reset", &target), ("block", &block), ("reload", &"{}".to_owned())] {
        let (status, answer) = manage(&admin, call, body);
        assert_eq!(status, 200, "{call}: {answer}");
        search.look(call, answer.as_bytes());
    }
    look_in_store(&redis, &mut search);
    // Without the store, and with a store that requires another password.
    redis.kill();
    use_it(&http, &admin, &mut search);
    redis.restart();
    let other = Redis::listen(&["--requirepass", "another"]);
    let wrong = policy(&other);
    for arguments in
        [&["check", "--probe", "-"][..], &["check", "--probe", "--format", "json", "-"]]
    {
        for file in [&wrong, &policy(&redis), &wrong.replace("127.0.0.1:", "127.0.0.1:x")] {
            let (_, out, err) = run(arguments, file);
            search.look("check --probe", format!("{out}{err}").as_bytes());
        }
    }
    let locked_out = Folder::with("locked-out", &wrong);
    let mut second = Process::start(&locked_out.0, &["serve", "--log", "trace"], &variables);
    let (http, admin) = (second.address("http"), second.address("admin"));
    use_it(&http, &admin, &mut search);
    for process in [&mut process, &mut second] {
        process.signal("TERM");
        assert_eq!(process.end().code(), Some(0));
        assert!(process.lines.iter().any(|line| line.contains("TRACE") || line.contains("DEBUG")));
        search.look("the log", process.lines.join("\n").as_bytes());
    }
    let audit = std::fs::read(folder.0.join("audit.jsonl")).unwrap();
    assert!(String::from_utf8_lossy(&audit).contains("reset"));
    search.look("the audit log", &audit);
    let spans = taken.lock().unwrap();
    assert!(spans.len() > 1_000, "spans were sent");
    search.look("the traces", &spans);
    assert!(search.0.is_empty(), "{:#?}", search.0);
}
