//! Servers in real time: nginx, HAProxy and Envoy, restarted for each trace.

use super::{NotApplicable, Peer};
use crate::process::{Folder, Running, free_port, output};
use crate::promise::{Answer, Limit, Played, Promise};
use crate::trace::{START_US, Step, THREADS, Trace, TraceKind};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// The possible difference between the instant of a decision and the client's view: servers' clocks
/// tick in milliseconds.
const SLACK_US: u64 = 2_000;
/// The factor by which a server's clock runs faster in long traces.
const FAST: u64 = 60;

/// Real time, or a multiple of it, as trace time.
#[derive(Clone, Copy)]
pub(super) struct RealClock {
    start: Instant,
    speed: u64,
}

impl RealClock {
    pub(super) fn start(speed: u64) -> Self {
        Self { start: Instant::now(), speed }
    }

    fn now_us(self) -> u64 {
        START_US + self.start.elapsed().as_micros() as u64 * self.speed
    }

    fn sleep_until(self, at_us: u64) {
        let at = self.start + Duration::from_micros((at_us - START_US) / self.speed);
        thread::sleep(at.saturating_duration_since(Instant::now()));
    }

    fn play(self, step: &Step, ask: &mut impl FnMut(u64) -> Answer) -> Played {
        self.sleep_until(step.at_us);
        let (from_us, answer, to_us) = (self.now_us(), ask(step.cost), self.now_us());
        let slack_us = SLACK_US * self.speed;
        Played { from_us: from_us - slack_us, to_us: to_us + slack_us, cost: step.cost, answer }
    }
}

/// Plays a trace in real time. `connect` gives each thread its own connection.
pub(super) fn play_real<F: FnMut(u64) -> Answer>(
    trace: &Trace,
    clock: RealClock,
    connect: impl Fn(usize) -> F + Sync,
) -> Vec<Played> {
    if trace.kind != TraceKind::Threads {
        let mut ask = connect(0);
        return trace.steps.iter().map(|step| clock.play(step, &mut ask)).collect();
    }
    let mut all: Vec<Played> = thread::scope(|scope| {
        let connect = &connect;
        let part = trace.steps.len() / THREADS;
        let work = |place| {
            move || {
                let mut ask = connect(place);
                // Requests of other threads come between, so waits and remaining units cannot be
                // judged.
                let ask = &mut |cost| Answer { admitted: ask(cost).admitted, ..Answer::default() };
                trace.steps[..part].iter().map(|step| clock.play(step, ask)).collect::<Vec<_>>()
            }
        };
        let workers: Vec<_> = (0..THREADS).map(|place| scope.spawn(work(place))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    all.sort_by_key(|one| one.from_us);
    all
}

/// A connection that is kept open, and reopened when the server closes it.
struct Client {
    port: u16,
    stream: Option<BufReader<TcpStream>>,
}

impl Client {
    fn ask(&mut self) -> Answer {
        let status = self.status().or_else(|_| {
            // The server closed the connection before it read the request.
            self.stream = None;
            self.status()
        });
        Answer { admitted: status.is_ok_and(|status| status == 200), ..Answer::default() }
    }

    fn status(&mut self) -> std::io::Result<u16> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(("127.0.0.1", self.port))?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        stream.get_mut().write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-User: key\r\n\r\n")?;
        let (mut line, mut length, mut is_last) = (String::new(), 0, false);
        stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(std::io::ErrorKind::InvalidData)?;
        loop {
            line.clear();
            stream.read_line(&mut line)?;
            let head = line.trim().to_ascii_lowercase();
            if let Some(value) = head.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            is_last |= head == "connection: close";
            if head.is_empty() {
                break;
            }
        }
        stream.read_exact(&mut vec![0; length])?;
        self.stream = (!is_last).then_some(stream);
        Ok(status)
    }
}

/// One server.
struct Server {
    name: &'static str,
    promise: Promise,
    documented: &'static str,
    version: &'static [&'static str],
    /// The command, with placeholders `CONFIG` and `FOLDER`, and its configuration.
    command: &'static [&'static str],
    config: fn(Limit, u16) -> String,
    /// Whether its clock can run fast with libfaketime.
    can_be_fast: bool,
}

pub(super) fn peers() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(Server {
            name: "nginx `limit_req`",
            promise: Promise::Bucket,
            documented: "`rate`, and `burst` requests beyond it, `nodelay`: the leaky bucket method. Its source keeps rates in thousandths of a request per second: `7r/m` is 0.116",
            version: &["nginx", "-v"],
            command: &["nginx", "-p", "FOLDER", "-c", "CONFIG", "-g", "daemon off;"],
            config: nginx,
            can_be_fast: true,
        }),
        Box::new(Server {
            name: "HAProxy stick-table `http_req_rate`",
            promise: Promise::Arrivals,
            documented: "`http_req_rate(<period>)`: the average request rate over that period; denied requests were tracked before",
            version: &["haproxy", "-v"],
            command: &["haproxy", "-db", "-f", "CONFIG"],
            config: haproxy,
            can_be_fast: true,
        }),
        Box::new(Server {
            name: "Envoy local rate limit",
            promise: Promise::Bucket,
            documented: "`token_bucket`: `max_tokens`, and `tokens_per_fill` each `fill_interval`",
            version: &["envoy", "--version"],
            command: &[
                "envoy",
                "-c",
                "CONFIG",
                "--log-level",
                "off",
                "--use-dynamic-base-id",
                "--concurrency",
                "2",
            ],
            config: envoy,
            can_be_fast: false,
        }),
    ]
}

impl Peer for Server {
    fn name(&self) -> String {
        self.name.into()
    }

    fn version(&self) -> Result<String, String> {
        let mut command = Command::new(self.version[0]);
        let text = output(command.args(&self.version[1..]))?;
        let is_number =
            |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
        // A path earlier in the line may contain version numbers too.
        let line = text.lines().find_map(|line| line.rsplit_once("version"));
        let line = line.map_or("", |(_, rest)| rest);
        let found = line.split([' ', '/']).find(is_number).map(str::to_owned);
        found.ok_or_else(|| format!("{} names no version", self.version[0]))
    }

    fn promise(&self) -> Promise {
        self.promise
    }

    fn documented(&self) -> &'static str {
        self.documented
    }

    fn repeat(&self) -> String {
        let config = (self.config)(Limit { count: 10, window_us: 1_000_000 }, 8080);
        let lines = config.lines().map(str::trim).filter(|line| {
            ["limit_req", "stick-table", "http-request", "token_bucket"]
                .iter()
                .any(|word| line.contains(word))
        });
        let lines: Vec<String> = lines.map(|line| format!("`{line}`")).collect();
        lines.join(", ")
    }

    fn play(&self, trace: &Trace) -> Result<Vec<Played>, NotApplicable> {
        match trace.kind {
            TraceKind::Costs => return Err("a request costs one".into()),
            TraceKind::ClockStep => return Err("needs the system's clock to be set".into()),
            TraceKind::Long if !self.can_be_fast => {
                return Err("needs 20 min of real time: its clock does not run faster".into());
            }
            _ => {}
        }
        let speed = if trace.kind == TraceKind::Long { FAST } else { 1 };
        let (folder, port) = (Folder::new(), free_port());
        let config = folder.write("config.yaml", &(self.config)(trace.limit, port));
        folder.write("index.html", "ok\n");
        let words = self.command.iter().map(|word| match *word {
            "CONFIG" => config.clone(),
            "FOLDER" => folder.path(),
            word => word.to_owned(),
        });
        let server = Running::start(words, speed)?;
        server.until_open(port)?;
        Ok(play_real(trace, RealClock::start(speed), |_| {
            let mut client = Client { port, stream: None };
            move |_| client.ask()
        }))
    }
}

fn nginx(limit: Limit, port: u16) -> String {
    let unit = if limit.window_us == 60_000_000 { 'm' } else { 's' };
    format!(
        "worker_processes 2;\nerror_log stderr crit;\npid nginx.pid;\nevents {{}}\nhttp {{\n  access_log off;\n  \
         client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n  \
         keepalive_requests 1000000;\n  limit_req_zone $http_x_user zone=users:1m rate={}r/{unit};\n  server {{\n    listen 127.0.0.1:{port};\n    \
         location / {{\n      limit_req zone=users burst={} nodelay;\n      limit_req_status 429;\n      root .;\n    }}\n  }}\n}}\n",
        limit.count,
        limit.count - 1,
    )
}

fn haproxy(limit: Limit, port: u16) -> String {
    let seconds = limit.window_us / 1_000_000;
    format!(
        "global\n  nbthread 2\ndefaults\n  mode http\n  timeout client 1h\n  timeout http-keep-alive 1h\nfrontend edge\n  bind 127.0.0.1:{port}\n  \
         stick-table type string len 32 size 1k expire 10m store http_req_rate({seconds}s)\n  http-request track-sc0 hdr(x-user)\n  \
         http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt {} }}\n  http-request return status 200\n",
        limit.count
    )
}

/// Configures a token every tenth of a second, so that it does not matter whether tokens come one
/// by one or together.
fn envoy(limit: Limit, port: u16) -> String {
    let interval_us = limit.window_us / limit.count;
    include_str!("../../peers/envoy.yaml")
        .replace("PORT", &port.to_string())
        .replace("COUNT", &limit.count.to_string())
        .replace(
            "INTERVAL",
            &format!("{}.{:06}s", interval_us / 1_000_000, interval_us % 1_000_000),
        )
}
