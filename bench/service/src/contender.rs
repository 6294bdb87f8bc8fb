//! The contenders, and the requests for each.

use crate::process::{Program, Ready};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The number of users in requests; each stays far below its limit.
pub(crate) const USERS: usize = 10_000;

/// One limit with the default algorithm.
const ONE: &str = "listen: {http: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}
limits:
  - {name: per-user, key: [user], rate: 100000/min}
";

/// The file for Envoy, with limits that even one user does not reach.
const ONE_GRPC: &str = "listen: {grpc: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}
limits:
  - {name: per-user, key: [descriptor.user], rate: 100000000/min}
";

/// Replacements that raise limits, for rows with a single user.
const HIGHER: [(&str, &str); 2] =
    [("100000/min", "100000000/min"), ("10000/s, burst: 20000", "1000000/s, burst: 1000000")];

/// Raises limits, so that a single user does not reach them.
pub(crate) fn higher(limits: &str) -> String {
    HIGHER.iter().fold(limits.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Two more limits on the same key.
const TWO_MORE: &str =
    "  - {name: spike, key: [user], algorithm: token-bucket, rate: 10000/s, burst: 20000}
  - {name: daily, key: [user], algorithm: gcra, rate: 4000000000/day}
";

/// A server that is measured.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    /// The name in tables.
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    pub(crate) wants: Wants,
}

/// The kind of request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wants {
    /// The check API. The floor accepts any request, so it gets this one.
    Check,
    /// throttlecrab's API: the limit comes with the request.
    Throttle,
    /// `CL.THROTTLE`, or the server's name for it.
    Command(&'static str),
    /// Envoy's rate limit service.
    Rls,
    /// throttlecrab's API over gRPC.
    ThrottleRpc,
    /// A page of the upstream behind a gateway.
    Page,
}

pub(crate) const OURS: &str = "ours";
pub(crate) const OURS_3: &str = "ours, three limits";
pub(crate) const FLOOR: &str = "floor (bare hyper)";
pub(crate) const FLOOR_FIELDS: &str = "floor with our header fields";
pub(crate) const THROTTLECRAB: &str = "throttlecrab-server";

pub(crate) const OURS_GRPC: &str = "ours, RLS";
pub(crate) const OURS_GRPC_3: &str = "ours, RLS, three limits";
pub(crate) const FLOOR_GRPC: &str = "floor (bare tonic, always OK)";
pub(crate) const FLOOR_GRPC_FIELDS: &str = "floor with an answer like ours";
pub(crate) const LIMITADOR_GRPC: &str = "limitador's library behind bare tonic";
pub(crate) const THROTTLECRAB_GRPC: &str = "throttlecrab-server, its own call";

pub(crate) const OURS_RESP: &str = "ours, CL.THROTTLE";
pub(crate) const FLOOR_RESP: &str = "floor (bare server)";
pub(crate) const THROTTLECRAB_RESP: &str = "throttlecrab-server, THROTTLE";
pub(crate) const CELL: &str = "redis-cell";

/// A file without limits: they come with the commands.
const RESP: &str = "listen: {resp: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}\n";

/// The paths of the programs.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) ours: PathBuf,
    /// An older build of Tollgate, to compare with.
    pub(crate) before: Option<PathBuf>,
    pub(crate) throttlecrab: PathBuf,
    /// The redis-cell module, for a redis-server.
    pub(crate) redis_cell: PathBuf,
    pub(crate) envoy: PathBuf,
}

impl Programs {
    /// The contender `name`, or the reason why it cannot be started.
    pub(crate) fn contender(&self, name: &'static str) -> Result<Contender, Box<dyn Error>> {
        let (path, arguments, ready, wants) = match name {
            OURS => (self.ours.clone(), serve("one.yaml", ONE)?, Ready::Line, Wants::Check),
            OURS_3 => {
                let file = format!("{ONE}{TWO_MORE}");
                (self.ours.clone(), serve("three.yaml", &file)?, Ready::Line, Wants::Check)
            }
            THROTTLECRAB => {
                let arguments = "--http --http-host 127.0.0.1 --http-port PORT --log-level warn";
                let arguments = arguments.split(' ').map(str::to_owned).collect();
                (self.throttlecrab.clone(), arguments, Ready::Port, Wants::Throttle)
            }
            OURS_GRPC => {
                (self.ours.clone(), serve("grpc.yaml", ONE_GRPC)?, Ready::Line, Wants::Rls)
            }
            OURS_GRPC_3 => {
                let more = TWO_MORE.replace("[user]", "[descriptor.user]");
                let more = higher(&more);
                let file = serve("grpc-three.yaml", &format!("{ONE_GRPC}{more}"))?;
                (self.ours.clone(), file, Ready::Line, Wants::Rls)
            }
            FLOOR_GRPC => (beside("grpc_floor")?, Vec::new(), Ready::Line, Wants::Rls),
            FLOOR_GRPC_FIELDS => {
                (beside("grpc_floor")?, vec!["--fields".into()], Ready::Line, Wants::Rls)
            }
            LIMITADOR_GRPC => {
                (beside("grpc_floor")?, vec!["--limitador".into()], Ready::Line, Wants::Rls)
            }
            THROTTLECRAB_GRPC => {
                let arguments = "--grpc --grpc-host 127.0.0.1 --grpc-port PORT --log-level warn";
                let arguments = arguments.split(' ').map(str::to_owned).collect();
                (self.throttlecrab.clone(), arguments, Ready::Port, Wants::ThrottleRpc)
            }
            OURS_RESP => {
                let wants = Wants::Command("CL.THROTTLE");
                (self.ours.clone(), serve("resp.yaml", RESP)?, Ready::Line, wants)
            }
            FLOOR_RESP => {
                (beside("resp_floor")?, Vec::new(), Ready::Line, Wants::Command("CL.THROTTLE"))
            }
            THROTTLECRAB_RESP => {
                let arguments = "--redis --redis-host 127.0.0.1 --redis-port PORT --log-level warn";
                let arguments = arguments.split(' ').map(str::to_owned).collect();
                (self.throttlecrab.clone(), arguments, Ready::Port, Wants::Command("THROTTLE"))
            }
            CELL if self.redis_cell.exists() => {
                let module = self.redis_cell.to_string_lossy();
                let arguments = ["--port", "PORT", "--save", "", "--loadmodule", &module];
                let arguments = arguments.map(str::to_owned).into();
                ("redis-server".into(), arguments, Ready::Port, Wants::Command("CL.THROTTLE"))
            }
            CELL => return Err(format!("{name}: there is no module; build the crate").into()),
            FLOOR => (beside("floor")?, Vec::new(), Ready::Line, Wants::Check),
            FLOOR_FIELDS => (beside("floor")?, vec!["--fields".into()], Ready::Line, Wants::Check),
            _ => return Err(format!("nobody is called {name}").into()),
        };
        if path.components().count() > 1 && !path.exists() {
            return Err(format!("{name}: there is no {}", path.display()).into());
        }
        let path = path.to_string_lossy().into_owned();
        Ok(Contender { name, program: Program { path, arguments, ready }, wants })
    }
}

impl Contender {
    /// The server for HTTP/2: enabled if needed, with limits that a single user does not reach.
    pub(crate) fn http2(mut self) -> Self {
        if self.name.starts_with("floor") {
            self.program.arguments.push("--http2".into());
        }
        if let Some(file) = self.program.arguments.last().filter(|file| file.ends_with(".yaml")) {
            let text = fs::read_to_string(file).unwrap_or_default();
            let higher = higher(&text);
            // If the file cannot be written, the server fails, and its error is printed.
            fs::write(file, higher).ok();
        }
        self
    }
}

impl Wants {
    /// The target of every request.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Check => "/v1/check",
            Self::Throttle => "/throttle",
            Self::Page => "/",
            Self::Command(name) => name,
            Self::Rls => "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
            Self::ThrottleRpc => "/throttlecrab.RateLimiter/Throttle",
        }
    }

    /// The call for one user, as framed protobuf.
    pub(crate) fn message(self) -> Vec<u8> {
        fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
            [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
        }
        let message = match self {
            Self::ThrottleRpc => {
                // 100,000,000 at once and per minute, as varints; one unit.
                let many = [0x80, 0xc2, 0xd7, 0x2f];
                let params = [&[0x10][..], &many, &[0x18], &many, &[0x20, 60, 0x28, 1]].concat();
                [field(1, b"user-000000"), params].concat()
            }
            _ => {
                let entry = [field(1, b"user"), field(2, b"user-000000")].concat();
                [field(1, b"edge"), field(2, &field(1, &entry))].concat()
            }
        };
        [&[0, 0, 0, 0, message.len() as u8], &message[..]].concat()
    }

    /// The body for one user.
    pub(crate) fn body(self, user: usize) -> String {
        match self {
            Self::Check => format!("{{\"attributes\":{{\"user\":\"user-{user:06}\"}}}}"),
            Self::Rls | Self::ThrottleRpc | Self::Page => String::new(),
            Self::Throttle | Self::Command(_) => format!(
                "{{\"key\":\"user-{user:06}\",\"max_burst\":100000,\"count_per_period\":100000,\"period\":60}}"
            ),
        }
    }

    /// A request for each user, in wire format.
    pub(crate) fn requests(self) -> Vec<Vec<u8>> {
        (0..USERS).map(|user| self.request(user)).collect()
    }

    /// A request for one user.
    pub(crate) fn request(self, user: usize) -> Vec<u8> {
        if let Self::Command(name) = self {
            let user = format!("user-{user:06}");
            let words = ["5", name, &user, "100000", "100000", "60"].into_iter().enumerate();
            let command = words.fold(String::new(), |text, (n, word)| match n {
                0 => format!("*{word}\r\n"),
                _ => format!("{text}${}\r\n{word}\r\n", word.len()),
            });
            return command.into_bytes();
        }
        if let Self::Page = self {
            let page =
                format!("GET / HTTP/1.1\r\nHost: localhost\r\nX-User-Id: user-{user:06}\r\n\r\n");
            return page.into_bytes();
        }
        let (path, body) = (self.path(), self.body(user));
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
            Content-Length: {length}\r\n\r\n{body}"
        );
        request.into_bytes()
    }
}

/// Writes this file, and returns the arguments that serve it.
pub(crate) fn serve(name: &str, text: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let folder = folder();
    fs::create_dir_all(&folder)?;
    let file = folder.join(name);
    fs::write(&file, text)?;
    Ok(vec!["serve".into(), "--config".into(), file.to_string_lossy().into_owned()])
}

/// The folder of the servers' files.
pub(crate) fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("tollgate-bench-{}", std::process::id()))
}

/// The path of a program built beside this one.
pub(crate) fn beside(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let own = std::env::current_exe()?;
    Ok(own.parent().unwrap_or(Path::new(".")).join(name))
}
