//! Reproducible traffic, and its log lines.

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(super) time_s: u64,
    pub(super) ip: String,
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) status: u16,
    pub(super) duration_ms: u64,
}

/// A scraper and a password guesser among three hundred clients, within an hour.
pub(crate) fn day() -> Vec<Request> {
    let mut random: u64 = 1;
    let mut below = |n: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    let start = 1_700_000_000;
    let mut all = Vec::new();
    let request = |time_s, ip: &str, method, path: &str, status, duration_ms| Request {
        time_s,
        ip: ip.to_owned(),
        method,
        path: path.to_owned(),
        status,
        duration_ms,
    };
    for client in 0..300 {
        let ip = format!("198.51.100.{}", client % 250 + 1);
        let ip = if client < 250 { ip } else { format!("2001:db8:{client:x}::1") };
        let first = start + below(3_000);
        for n in 0..5 + below(10) {
            let path = format!("/api/items/{}?page={}", below(9_999), n);
            all.push(request(first + n * (1 + below(5)), &ip, "GET", &path, 200, 10));
        }
        if client % 5 == 0 {
            all.push(request(first + 60, &ip, "GET", "/api/reports/7", 200, 300));
            all.push(request(first, &ip, "POST", "/login", 200, 20));
        }
    }
    for n in 0..2_000 {
        let path = format!("/api/items/{n}");
        all.push(request(start + 600 + n / 5, "203.0.113.66", "GET", &path, 200, 10));
    }
    for n in 0..200 {
        all.push(request(start + 1_800 + n, "203.0.113.77", "POST", "/login", 401, 20));
    }
    all.sort_by_key(|request| request.time_s);
    all
}

/// `14/Nov/2023:22:13:20`, for times within a day of it.
pub(super) fn clf(time_s: u64) -> String {
    let of = time_s - 1_699_920_000;
    let (day, of) = (14 + of / 86_400, of % 86_400);
    format!("{day:02}/Nov/2023:{:02}:{:02}:{:02}", of / 3_600, of / 60 % 60, of % 60)
}

/// `2023-11-14` and `22:13:20`.
pub(super) fn iso(time_s: u64) -> (String, String) {
    let of = time_s - 1_699_920_000;
    let (day, of) = (14 + of / 86_400, of % 86_400);
    (format!("2023-11-{day:02}"), format!("{:02}:{:02}:{:02}", of / 3_600, of / 60 % 60, of % 60))
}

/// The requests as nginx logs them.
pub(crate) fn nginx(requests: &[Request]) -> String {
    let line = |request: &Request| {
        let Request { time_s, ip, method, path, status, .. } = request;
        let time = clf(*time_s);
        format!(
            "{ip} - - [{time} +0000] \"{method} {path} HTTP/1.1\" {status} 612 \"-\" \"curl/8.5\"\n"
        )
    };
    requests.iter().map(line).collect()
}

/// The requests as rows of `simulate`.
pub(super) fn rows(requests: &[Request]) -> String {
    let row = |request: &Request| {
        let Request { time_s, ip, method, path, .. } = request;
        let path = path.split('?').next().unwrap();
        format!(
            "{{\"time\": {time_s}, \"attributes\": {{\"ip\": \"{ip}\", \"method\": \"{method}\", \"path\": \"{path}\"}}}}\n"
        )
    };
    requests.iter().map(row).collect()
}
