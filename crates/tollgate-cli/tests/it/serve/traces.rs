use super::process::{Folder, Process, check};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Accepts requests until one has this path. Returns its first line, headers and body.
fn collect(listener: TcpListener, path: &str) -> (String, Vec<u8>) {
    loop {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        if head.starts_with(&format!("post {path} ")) {
            return (head, body);
        }
    }
}

/// The process sends its last batch before it ends, whatever the interval.
#[test]
fn decisions_are_in_the_traces_of_the_collector_that_the_environment_names() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let collector = thread::spawn(move || collect(listener, "/v1/traces"));
    let policy =
        "listen: {http: '127.0.0.1:0'}\nlimits: [{name: per-user, key: [user], rate: 9/s}]";
    let folder = Folder::with("traces", policy);
    let variables =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint), ("OTEL_SERVICE_NAME", "the-gate-keeper")];
    let mut process = Process::start(&folder.0, &["serve"], &variables);
    let http = process.address("http");
    assert_eq!(check(&http, "{\"user\": \"somebody-in-particular\"}").0, 200);
    process.signal("TERM");
    assert_eq!(process.end().code(), Some(0));
    let (head, body) = collector.join().unwrap();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    let has = |text: &str| body.windows(text.len()).any(|window| window == text.as_bytes());
    let parts = ["key", "allowed", "remaining", "limit", "source"];
    assert!(parts.iter().all(|part| has(&format!("ratelimit.{part}"))));
    assert!(has("the-gate-keeper") && has("per-user") && !has("somebody-in-particular"));
}

/// Decisions for Redis clients and for Envoy are spans too, one for each command, without keys.
#[test]
fn every_protocol_is_traced() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let collector = thread::spawn(move || collect(listener, "/v1/traces"));
    let policy = "listen: {http: '127.0.0.1:0', resp: '127.0.0.1:0'}
limits: [{name: per-user, key: [user], rate: 9/s}, {name: described, key: [descriptor.user], rate: 9/s}]";
    let folder = Folder::with("traces-of-all", policy);
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint)];
    let mut process = Process::start(&folder.0, &["serve"], &variables);
    let mut redis = TcpStream::connect(process.address("resp")).unwrap();
    redis
        .write_all(b"CL.THROTTLE hidden 15 30 60\r\nTG.CHECK per-user 1 hidden\r\nPING\r\nQUIT\r\n")
        .unwrap();
    let mut said = String::new();
    redis.read_to_string(&mut said).unwrap();
    assert!(said.ends_with("+PONG\r\n+OK\r\n"), "{said}");
    let http = process.address("http");
    let json = "{\"domain\": \"edge\", \"descriptors\": [{\"entries\": [{\"key\": \"user\", \"value\": \"hidden\"}]}]}";
    assert_eq!(post(&http, "/json", json), 200);
    process.signal("TERM");
    assert_eq!(process.end().code(), Some(0));
    let (_, body) = collector.join().unwrap();
    let count =
        |text: &str| body.windows(text.len()).filter(|found| *found == text.as_bytes()).count();
    assert_eq!(count("ratelimit.decision"), 3);
    assert_eq!([count("CL.THROTTLE"), count("per-user"), count("described")], [1; 3]);
    // The attribute's name, and the names of front ends.
    assert_eq!((count("tollgate.front"), count("hidden")), (3, 0));
    assert!(count("resp") >= 2 && count("grpc") >= 1);
}

/// The status of a request in JSON.
fn post(address: &str, path: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap()
}

/// The values of `/metrics` go to the same collector, through the same client.
#[test]
fn metrics_go_to_the_collector_that_the_environment_names() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let collector = thread::spawn(move || collect(listener, "/v1/metrics"));
    let policy =
        "listen: {http: '127.0.0.1:0'}\nlimits: [{name: per-user, key: [user], rate: 9/s}]";
    let folder = Folder::with("metrics", policy);
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("OTEL_SERVICE_NAME", "the-gate-keeper"),
        ("OTEL_TRACES_EXPORTER", "none"),
    ];
    let mut process = Process::start(&folder.0, &["serve"], &variables);
    let http = process.address("http");
    assert_eq!(check(&http, "{\"user\": \"somebody-in-particular\"}").0, 200);
    process.signal("TERM");
    assert_eq!(process.end().code(), Some(0));
    let (head, body) = collector.join().unwrap();
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    let has = |text: &str| body.windows(text.len()).any(|window| window == text.as_bytes());
    for name in ["decisions_total", "requests_total", "decision_seconds", "build_info"] {
        assert!(has(&format!("tollgate_{name}")), "{name}");
    }
    assert!(has("the-gate-keeper") && has("per-user") && !has("somebody-in-particular"));
}

#[test]
fn a_collector_that_is_not_there_is_said_once_and_costs_no_answer() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let policy = "listen: {http: '127.0.0.1:0'}\nlimits: [{name: a, rate: 9/s}]";
    let folder = Folder::with("no-collector", policy);
    let endpoint = format!("http://{nobody}");
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("OTEL_BSP_SCHEDULE_DELAY", "1"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "20"),
    ];
    let mut process = Process::start(&folder.0, &["serve"], &variables);
    let http = process.address("http");
    for _ in 0..3 {
        assert_eq!(check(&http, "{}").0, 200);
    }
    // In any order: metrics are sent from the start, spans after the first answer.
    for rejected in ["trace collector rejects spans", "metrics collector rejects metrics"] {
        let is_said = |line: &str| line.contains(rejected) && line.contains(&endpoint);
        if !process.lines.iter().any(|line| is_said(line)) {
            process.until(is_said);
        }
    }
    for _ in 0..3 {
        assert_eq!(check(&http, "{}").0, 200);
    }
    process.signal("TERM");
    assert_eq!(process.end().code(), Some(0));
    for collector in ["trace collector", "metrics collector"] {
        let said = process.lines.iter().filter(|line| line.contains(collector)).count();
        assert_eq!(said, 1, "{:#?}", process.lines);
    }
}
