//! Upstreams, Redis URLs and nodes. Messages never quote a URL, since it may contain a password.

use super::Problem;
use crate::diagnostic::codes;
use crate::hex;
use crate::settings::{RedisUrl, Secret, Upstream};

fn bad(message: &str, help: &str) -> Problem {
    Problem::new(codes::BAD_URL, message, help)
}

/// A bad host. An international name has an ASCII form, which name servers know.
fn bad_host(host: &str, message: &str, help: &str) -> Problem {
    if host.is_ascii() {
        bad(message, help)
    } else {
        bad(message, "write the host in ASCII, such as `xn--bcher-kva.example`")
    }
}

/// `http://host[:port]` or `https://host[:port]`.
pub(crate) fn upstream(text: &str) -> Result<Upstream, Problem> {
    let help = "write it as `http://127.0.0.1:3000`";
    let (tls, rest) = match text.split_once("://") {
        Some(("http", rest)) => (false, rest),
        Some(("https", rest)) => (true, rest),
        _ => return Err(bad("the upstream does not start with http:// or https://", help)),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains('@') {
        return Err(bad("the upstream carries credentials", "remove what is before the `@`"));
    }
    if authority.contains(['/', '?', '#']) {
        let help = "requests keep their own path: end the URL after the host and port";
        return Err(bad("the upstream has a path, query or fragment", help));
    }
    let (host, port) = host_and_port(authority)
        .ok_or_else(|| bad_host(authority, "the upstream has no valid host and port", help))?;
    Ok(Upstream { tls, host, port: port.unwrap_or(if tls { 443 } else { 80 }) })
}

/// `redis://[user[:password]@]host[:port][/db]`, `rediss://` likewise, or `unix:///path[?db=db]`.
pub(crate) fn redis_url(text: &str) -> Result<RedisUrl, Problem> {
    let help =
        "write it as `redis://host:6379/0`, `rediss://host:6379/0` or `unix:///run/redis.sock`";
    let (tls, rest) = match text.split_once("://") {
        Some(("redis", rest)) => (false, rest),
        Some(("rediss", rest)) => (true, rest),
        Some(("unix" | "redis+unix", path)) if path.starts_with('/') => {
            let (path, query) = path.split_once('?').unwrap_or((path, "db=0"));
            let database = query.strip_prefix("db=").and_then(|digits| digits.parse().ok());
            let help = "write it as `unix:///run/redis.sock?db=0`";
            let database = database
                .ok_or_else(|| bad("the socket is not followed by a database number", help))?;
            return Ok(RedisUrl::Unix { path: path.into(), database });
        }
        _ => return Err(bad("the URL does not start with redis://, rediss:// or unix:///", help)),
    };
    let (credentials, rest) = match rest.rsplit_once('@') {
        Some((credentials, rest)) => (Some(credentials), rest),
        None => (None, rest),
    };
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = host_and_port(authority)
        .ok_or_else(|| bad_host(authority, "the URL has no valid host and port", help))?;
    let database = match database {
        "" => 0,
        digits => digits
            .parse::<u32>()
            .map_err(|_| bad("the URL does not end in a database number", "write it as `.../0`"))?,
    };
    let (username, password) = match credentials {
        Some(credentials) => credentials_of(credentials)?,
        None => (None, None),
    };
    Ok(RedisUrl::Tcp { tls, host, port: port.unwrap_or(6379), database, username, password })
}

type Credentials = (Option<Box<str>>, Option<Secret>);

fn credentials_of(text: &str) -> Result<Credentials, Problem> {
    let decode = |part: &str| {
        hex::percent_decode(part).ok_or_else(|| {
            let help = "after each `%` come two hexadecimal digits, and the whole is UTF-8";
            bad("the user name or password has a bad %-escape", help)
        })
    };
    let (user, password) = match text.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (text, None),
    };
    let user = decode(user)?;
    let password = password.map(decode).transpose()?.filter(|password| !password.is_empty());
    Ok(((!user.is_empty()).then(|| user.into()), password.map(Secret::literal)))
}

/// `host:port` of a Sentinel or a cluster node.
pub(crate) fn node(text: &str) -> Result<(Box<str>, u16), Problem> {
    match host_and_port(text) {
        Some((host, Some(port))) => Ok((host, port)),
        _ => Err(bad_host(text, "the node is not a host and a port", "write it as `host:6379`")),
    }
}

/// A name, an IPv4 address or an IPv6 address in brackets, with an optional port.
fn host_and_port(text: &str) -> Option<(Box<str>, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    if host.is_empty() || host.len() > 255 || !host.chars().all(valid) {
        return None;
    }
    let port = match port {
        Some(digits) => Some(digits.parse::<u16>().ok().filter(|port| *port > 0)?),
        None => None,
    };
    Some((host.into(), port))
}
