use super::*;
use crate::entry::Field;

/// Shows all fields of a line in one text.
fn shown(entry: &Entry<'_>) -> String {
    let fields = [
        ("ip", Field::Ip),
        ("method", Field::Method),
        ("path", Field::Path),
        ("query", Field::Query),
        ("host", Field::Host),
        ("user", Field::User),
        ("agent", Field::UserAgent),
        ("referer", Field::Referer),
        ("for", Field::ForwardedFor),
        ("cookie", Field::Cookie),
    ];
    let mut parts = vec![format!("{}", entry.time_us)];
    for (name, field) in fields {
        if !entry.value(field).is_empty() {
            parts.push(format!("{name}={}", entry.value(field)));
        }
    }
    parts.extend(entry.attributes.iter().map(|(place, value)| format!("#{place}={value}")));
    parts.push(entry.status.to_string());
    parts.extend(entry.duration_us.map(|us| format!("{us} us")));
    parts.extend(entry.bytes.map(|bytes| format!("{bytes} B")));
    parts.join(" ")
}

/// Reads lines, and shows the last.
fn read(name: &str, options: &ReadOptions, lines: &str) -> String {
    let mut format = (find_format(name).unwrap().build)(options).unwrap();
    let mut last = String::new();
    for line in lines.lines() {
        let mut entry = Entry::default();
        last = match format.read(line, &mut entry) {
            Ok(LineKind::Request) => shown(&entry),
            other => format!("{other:?}"),
        };
    }
    last
}

#[track_caller]
fn reads(name: &str, lines: &str, expected: &str) {
    assert_eq!(read(name, &ReadOptions::default(), lines), expected);
}

fn wanting(attributes: &[&str], columns: &[(&str, &str)]) -> ReadOptions {
    let owned = |text: &&str| (*text).to_owned();
    let columns = columns.iter().map(|(a, b)| (owned(a), owned(b))).collect();
    ReadOptions::new(attributes.iter().map(owned).collect(), columns)
}

#[test]
fn nginx_combined_main_and_a_format_of_its_own() {
    let line = r#"203.0.113.7 - jane [14/Nov/2023:22:13:20 +0000] "GET /api/x?page=2 HTTP/1.1" 200 612 "https://example.com/" "curl/8.5 \x22x\x22""#;
    let expected = "1700000000000000 ip=203.0.113.7 method=GET path=/api/x query=page=2 user=jane \
                    agent=curl/8.5 \"x\" referer=https://example.com/ 200 612 B";
    reads("nginx", line, expected);
    let main = format!("{line} \"198.51.100.9, 10.0.0.2\"");
    reads("nginx", &main, &expected.replace(" 200", " for=198.51.100.9, 10.0.0.2 200"));
    // Unknown fields at the end of a line are ignored.
    reads("nginx", &format!("{line}\n{line} 0.012 -"), expected);
    let mut options =
        wanting(&["header.x-api-key", "tenant"], &[("tenant", "upstream_http_x_tenant")]);
    options.template = Some(
        "$msec|$remote_addr|\"$request\"|$status|$request_time|$http_x_api_key|$upstream_http_x_tenant".into(),
    );
    let line = r#"1700000000.500|::1|"POST / HTTP/2.0"|201|0.250|key-1|acme"#;
    assert_eq!(
        read("nginx", &options, line),
        "1700000000250000 ip=::1 method=POST path=/ #0=key-1 #1=acme 201 250000 us"
    );
}

#[test]
fn bytes_that_are_no_request_are_not_http() {
    for request in ["", "-", r"\x16\x03\x01\x02", "quit", " "] {
        let line =
            format!(r#"192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] "{request}" 400 0 "-" "-""#);
        reads("nginx", &line, "Ok(NotHttp)");
    }
}

#[test]
fn apache_common_combined_and_virtual_hosts() {
    let common =
        r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#;
    let expected =
        "971211336000000 ip=127.0.0.1 method=GET path=/apache_pb.gif user=frank 200 2326 B";
    reads("apache", common, expected);
    let combined = format!(r#"{common} "-" "Mozilla \"x\"""#);
    reads("apache", &combined, &expected.replace(" 200", " agent=Mozilla \"x\" 200"));
    let host = format!("www.example.com:443 {common}");
    reads("apache", &host, &expected.replace(" user", " host=www.example.com user"));
}

#[test]
fn caddy_json_and_its_other_messages() {
    let line = r#"{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"198.51.100.4","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b=c","headers":{"User-Agent":["curl/7.82.0"],"X-Api-Key":["k1"],"Authorization":["REDACTED"]}},"bytes_read":0,"user_id":"jane","duration":0.000929675,"size":10900,"status":200}"#;
    let options = wanting(
        &["header.x-api-key", "header.authorization", "proto"],
        &[("proto", "request.proto")],
    );
    assert_eq!(
        read("caddy", &options, line),
        "1646861401523173 ip=198.51.100.4 method=GET path=/a query=b=c host=localhost user=jane \
         agent=curl/7.82.0 #2=HTTP/2.0 #0=k1 200 929 us 10900 B"
    );
    reads("caddy", r#"{"level":"info","ts":1646861401.5,"msg":"serving"}"#, "Ok(NotHttp)");
}

#[test]
fn envoy_text_of_envoy_and_istio_and_json() {
    let text = r#"[2023-11-14T22:13:20.310Z] "POST /api/v1/x?y HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80""#;
    reads(
        "envoy",
        text,
        "1700000000310000 ip=10.0.35.28 method=POST path=/api/v1/x query=y host=locations \
         agent=nsq2http for=10.0.35.28 204 226000 us 0 B",
    );
    let istio = r#"[2023-11-14T22:13:20.310Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 5 2 "-" "curl/7.73.0" "84961386" "httpbin:8000" "127.0.0.1:80" inbound|8000|| 127.0.0.6:33199 10.44.1.23:80 10.44.1.27:46520 outbound_.8000_._.httpbin.foo default"#;
    reads(
        "envoy",
        istio,
        "1700000000310000 ip=10.44.1.27:46520 method=GET path=/status/418 host=httpbin:8000 \
         agent=curl/7.73.0 418 5000 us 135 B",
    );
    let json = r#"{"start_time":"2023-11-14T22:13:20.310Z","method":"GET","path":"/","response_code":200,"duration":3,"bytes_sent":7,"authority":"a.example","x_forwarded_for":null,"user_agent":"c","downstream_remote_address":"192.0.2.3:5000","x-api-key":"k"}"#;
    let options = wanting(&["header.x-api-key"], &[]);
    assert_eq!(
        read("envoy", &options, json),
        "1700000000310000 ip=192.0.2.3:5000 method=GET path=/ host=a.example agent=c #0=k 200 3000 us 7 B"
    );
}

#[test]
fn haproxy_with_and_without_syslog_and_captures() {
    let line = r#"10.0.1.2:33317 [14/Nov/2023:22:13:20.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu|k1} {} "GET /index.html?a HTTP/1.1""#;
    let expected =
        "1700000000655000 ip=10.0.1.2 method=GET path=/index.html query=a 200 109000 us 2750 B";
    reads("haproxy", line, expected);
    reads("haproxy", &format!("Nov 14 22:13:20 localhost haproxy[14389]: {line}"), expected);
    let options = wanting(&["api_key"], &[("api_key", "request.2")]);
    assert_eq!(read("haproxy", &options, line), expected.replace(" 200", " #0=k1 200"));
    let aborted = r#"2001:db8::7:9999 [14/Nov/2023:22:13:20.655] in in/<NOSRV> -1/-1/-1/-1/+50 -1 0 - - CR-- 1/1/0/0/0 0/0 "<BADREQ>""#;
    reads("haproxy", aborted, "Ok(NotHttp)");
}

#[test]
fn tollgate_json() {
    let line = r#"{"time":"2023-11-14T22:13:20.250000Z","client":"192.0.2.1","method":"GET","target":"/x?y=1","protocol":"HTTP/1.1","host":"example.com","user_agent":"curl/8.5","request_id":"r-1","status":429,"bytes":167,"outcome":"refused","duration_us":612}"#;
    let expected = "1700000000250000 ip=192.0.2.1 method=GET path=/x query=y=1 host=example.com \
                    agent=curl/8.5 429 612 us 167 B";
    reads("tollgate", line, expected);
    // The decision log does not have the parts of a request.
    let decision = r#"{"time":"2023-11-14T22:13:20Z","outcome":"refused"}"#;
    reads("tollgate", decision, r#"Err(BadLine("the object has no member `client`"))"#);
}

#[test]
fn traefik_common_and_json() {
    let line = r#"192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] "GET /x HTTP/1.1" 404 19 "-" "curl" 1 "web@docker" "http://10.0.0.2:80" 12ms"#;
    reads(
        "traefik",
        line,
        "1700000000000000 ip=192.0.2.1 method=GET path=/x agent=curl 404 12000 us 19 B",
    );
    let json = r#"{"ClientAddr":"192.0.2.1:58892","ClientHost":"192.0.2.1","ClientUsername":"-","DownstreamContentSize":19,"DownstreamStatus":404,"Duration":61537,"RequestHost":"example.com","RequestMethod":"GET","RequestPath":"/x?y=1","StartUTC":"2023-11-14T22:13:20.00000Z","request_X-Api-Key":"k"}"#;
    let options = wanting(&["header.x-api-key"], &[]);
    assert_eq!(
        read("traefik", &options, json),
        "1700000000000000 ip=192.0.2.1 method=GET path=/x query=y=1 host=example.com #0=k 404 61 us 19 B"
    );
}

#[test]
fn alb_with_the_time_of_creation_and_before_it_had_one() {
    let line = r#"https 2023-11-14T22:13:21.500000Z app/lb/50dc6c495c0c9188 [2001:db8::7]:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/a?b HTTP/1.1" "curl/7.46.0" ECDHE-RSA TLSv1.2 arn:aws:x "Root=1-58337281" "www.example.com" "arn:aws:acm" 1 2023-11-14T22:13:20.000000Z "waf,forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#;
    let expected = "1700000000000000 ip=[2001:db8::7]:2817 method=GET path=/a query=b \
                    host=www.example.com:443 agent=curl/7.46.0 200 171000 us 57 B";
    reads("alb", line, &expected.replace("1700000000000000", "1699999999829000"));
    let old = r#"http 2023-11-14T22:13:20.171000Z app/lb/5 192.0.2.1:2817 - 0.086 0.048 0.037 200 200 0 57 "GET http://www.example.com:80/ HTTP/1.1" "curl" - -"#;
    reads(
        "alb",
        old,
        "1700000000000000 ip=192.0.2.1:2817 method=GET path=/ host=www.example.com:80 agent=curl 200 171000 us 57 B",
    );
}

#[test]
fn cloudfront_tables() {
    let text = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken\n\
                2023-11-14\t22:13:21\tLAX1\t2390\t2001:db8::7\tGET\td1.cloudfront.net\t/index.html\t200\t-\tMozilla/5.0%20(X11)\ta=1\tsid=7\tHit\tID==\twww.example.com\thttps\t23\t0.500";
    reads(
        "cloudfront",
        text,
        "1700000000500000 ip=2001:db8::7 method=GET path=/index.html query=a=1 host=www.example.com \
         agent=Mozilla/5.0 (X11) cookie=sid=7 200 500000 us 2390 B",
    );
    let message = read("cloudfront", &ReadOptions::default(), "2023-11-14\t22:13:20\tx");
    assert!(message.contains("no `#Fields:`"), "{message}");
}

#[test]
fn csv_with_quotes_and_columns_of_ones_own() {
    let text = "Time;Path;api_key;Plan Name\n2023-11-14T22:13:20Z;\"/a;\"\"b\"\"?c\";k1;gold";
    let options = wanting(&["api_key", "plan"], &[("plan", "Plan Name")]);
    assert_eq!(
        read("csv", &options, text),
        "1700000000000000 path=/a;\"b\" query=c #0=k1 #1=gold 0"
    );
    let short = read("csv", &options, "time,ip,user\n1700000000,192.0.2.1");
    assert!(short.contains("2 columns of 3"), "{short}");
    assert!(read("csv", &options, "a,b,c").contains("no column `time`"));
}
