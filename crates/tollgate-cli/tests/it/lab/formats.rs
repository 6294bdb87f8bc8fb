//! The same requests in every log format give the same result.

use super::Bench;
use super::traffic::{Request, clf, day, iso, nginx};
use serde_json::Value;

const POLICY: &str = "
limits:
  - {name: per-address, key: [ip], rate: 60/min}
  - {name: login, match: {path: /login, method: POST}, key: [ip], rate: 5/min}
";

type Line = fn(&Request) -> String;

fn lines(requests: &[Request], head: &str, line: Line) -> String {
    head.to_owned() + &requests.iter().map(|request| line(request) + "\n").collect::<String>()
}

fn apache(r: &Request) -> String {
    let time = clf(r.time_s + 7_200);
    let Request { ip, method, path, status, .. } = r;
    format!("{ip} - - [{time} +0200] \"{method} {path} HTTP/1.1\" {status} 612")
}

fn caddy(r: &Request) -> String {
    let Request { ip, method, path, status, duration_ms, .. } = r;
    let end_ms = 1_000 * r.time_s + duration_ms;
    let (end, end_ms) = (end_ms / 1_000, end_ms % 1_000);
    format!(
        "{{\"level\":\"info\",\"ts\":{end}.{end_ms:03},\"msg\":\"handled request\",\"request\":{{\"remote_ip\":\"{ip}\",\
         \"method\":\"{method}\",\"host\":\"example.com\",\"uri\":\"{path}\",\"headers\":{{}}}},\
         \"duration\":0.{duration_ms:03},\"size\":612,\"status\":{status}}}"
    )
}

fn envoy(r: &Request) -> String {
    let (date, time) = iso(r.time_s);
    let Request { ip, method, path, status, duration_ms, .. } = r;
    format!(
        "[{date}T{time}.000Z] \"{method} {path} HTTP/2\" {status} - 0 612 {duration_ms} 5 \"{ip}\" \"curl\" \
         \"84961386\" \"example.com\" \"10.0.0.1:80\""
    )
}

fn envoy_json(r: &Request) -> String {
    let (date, time) = iso(r.time_s);
    let Request { ip, method, path, status, duration_ms, .. } = r;
    let ip = if ip.contains(':') { format!("[{ip}]") } else { ip.clone() };
    format!(
        "{{\"start_time\":\"{date}T{time}.000Z\",\"method\":\"{method}\",\"path\":\"{path}\",\
         \"response_code\":{status},\"duration\":{duration_ms},\"downstream_remote_address\":\"{ip}:4711\"}}"
    )
}

fn haproxy(r: &Request) -> String {
    let Request { ip, method, path, status, duration_ms, .. } = r;
    let time = clf(r.time_s);
    format!(
        "Nov 14 22:13:20 lb haproxy[1]: {ip}:4711 [{time}.000] in web/a 0/0/1/2/{duration_ms} {status} 612 - - ---- \
         1/1/0/0/0 0/0 \"{method} {path} HTTP/1.1\""
    )
}

fn traefik(r: &Request) -> String {
    let Request { ip, method, path, status, duration_ms, .. } = r;
    let time = clf(r.time_s);
    format!(
        "{ip} - - [{time} +0000] \"{method} {path} HTTP/1.1\" {status} 612 \"-\" \"curl\" 1 \"web@file\" \
         \"http://10.0.0.1:80\" {duration_ms}ms"
    )
}

fn traefik_json(r: &Request) -> String {
    let (date, time) = iso(r.time_s);
    let Request { ip, method, path, status, duration_ms, .. } = r;
    format!(
        "{{\"ClientHost\":\"{ip}\",\"DownstreamStatus\":{status},\"Duration\":{duration_ms}000000,\
         \"RequestMethod\":\"{method}\",\"RequestPath\":\"{path}\",\"StartUTC\":\"{date}T{time}Z\"}}"
    )
}

fn alb(r: &Request) -> String {
    let Request { ip, method, path, status, duration_ms, .. } = r;
    let (date, time) = iso(r.time_s);
    let ip = if ip.contains(':') { format!("[{ip}]") } else { ip.clone() };
    format!(
        "https {date}T{time}.{duration_ms:03}000Z app/lb/1 {ip}:4711 10.0.0.1:80 0.000 0.{duration_ms:03} 0.000 {status} \
         {status} 0 612 \"{method} https://example.com:443{path} HTTP/1.1\" \"curl\" - - arn \"-\" \"-\" \"-\" 0 \
         {date}T{time}.000000Z \"forward\" \"-\" \"-\""
    )
}

fn cloudfront(r: &Request) -> String {
    let Request { ip, method, path, status, .. } = r;
    let (date, time) = iso(r.time_s);
    let (path, query) = path.split_once('?').unwrap_or((path, "-"));
    format!(
        "{date}\t{time}\tFRA1\t612\t{ip}\t{method}\td1.example\t{path}\t{status}\t-\tcurl/8.5%20x\t{query}\t0.000"
    )
}

fn tollgate(r: &Request) -> String {
    let Request { ip, method, path, status, duration_ms, .. } = r;
    let (date, time) = iso(r.time_s);
    format!(
        "{{\"time\":\"{date}T{time}Z\",\"client\":\"{ip}\",\"method\":\"{method}\",\"target\":\"{path}\",\
         \"protocol\":\"HTTP/1.1\",\"status\":{status},\"bytes\":612,\"outcome\":\"admitted\",\
         \"duration_us\":{duration_ms}000}}"
    )
}

fn csv(r: &Request) -> String {
    let Request { time_s, ip, method, path, status, .. } = r;
    format!("{time_s},{ip},{method},\"{path}\",{status}")
}

fn counts(report: &Value) -> Value {
    let limits = report["limits"].as_array().unwrap();
    limits
        .iter()
        .map(|limit| (&limit["refused"], &limit["keys_refused"]))
        .map(|of| serde_json::json!(of))
        .collect()
}

#[test]
fn every_format_is_detected_and_comes_to_the_same_result() {
    let requests = day();
    let fields = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem \
                  sc-status cs(Referer) cs(User-Agent) cs-uri-query time-taken\n";
    let all: [(&str, &str, &str, Line); 11] = [
        ("apache", "apache", "", apache),
        ("caddy", "caddy", "", caddy),
        ("envoy", "envoy", "", envoy),
        ("envoy-json", "envoy", "", envoy_json),
        ("haproxy", "haproxy", "", haproxy),
        ("traefik", "traefik", "", traefik),
        ("traefik-json", "traefik", "", traefik_json),
        ("alb", "alb", "", alb),
        ("cloudfront", "cloudfront", fields, cloudfront),
        ("tollgate", "tollgate", "", tollgate),
        ("csv", "csv", "time,ip,method,path,status\n", csv),
    ];
    let bench = Bench::new("formats", &[("tollgate.yaml", POLICY), ("nginx", &nginx(&requests))]);
    let expected = bench.json(&["replay", "nginx"]);
    assert_eq!(expected["input"]["files"][0]["format"], "nginx");
    assert!(expected["refused"].as_u64().unwrap() > 1_000, "{expected}");
    for (file, format, head, line) in all {
        bench.write(file, lines(&requests, head, line).as_bytes());
        let found = bench.json(&["replay", file]);
        assert_eq!(found["input"]["files"][0]["format"], format, "{file}");
        assert_eq!(found["input"]["requests"], requests.len(), "{file}: {}", found["input"]);
        assert_eq!(counts(&found), counts(&expected), "{file}");
        // The format can be named, and the error for a wrong name suggests the right one.
        assert_eq!(bench.json(&["replay", file, "--format", format])["refused"], found["refused"]);
        let wrong = if format == "alb" { "caddy" } else { "alb" };
        let (status, _, stderr) = bench.text(&["replay", file, "--format", wrong]);
        let likely = format!("the lines look like {format}: try --format {format}");
        assert!(status == 2 && stderr.contains(&likely), "{file}: {stderr}");
    }
}
