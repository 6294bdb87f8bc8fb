//! The response to a refused request, and to an ambiguous one.

use super::{RateLimitHeaders, refusal_status};
use crate::Ambiguity;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use std::fmt::Write;
use tollgate::engine::{Row, Source, Verdict};
use tollgate_core::header::{Problem, Quota, refusal_members, retry_after_seconds};
use tollgate_policy::facts::Unverified;
use tollgate_policy::settings::Template;

/// A refusal, as data for a response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// 429, or 503 if the request was shed or the store failed.
    pub status: StatusCode,
    /// Seconds until a retry can succeed; `None` if no wait helps.
    pub retry_after_s: Option<u64>,
    /// The source of the decision.
    pub source: Source,
    /// The disclosed limits that refused.
    pub limits: Vec<Box<str>>,
    /// The figures of the tightest of these limits.
    pub quota: Option<Quota>,
    /// The rate limit headers, including `Retry-After`.
    pub headers: RateLimitHeaders,
    /// The reason why the token did not verify, if that caused the refusal.
    pub unverified: Option<Unverified>,
    problem: Problem,
    template: Option<Template>,
}

/// The problem for a refusal with these rows: its type, and the figures of the tightest disclosed
/// limit.
pub fn problem_of(verdict: &Verdict<'_>) -> (Problem, Option<Quota>) {
    let mut refusing = verdict.rows.iter().filter(|row| row.refuses());
    let problem = match (refusal_status(verdict), refusing.clone().next()) {
        (503, _) => Problem::TemporaryReducedCapacity,
        // The first limit that refuses says where the decision came from.
        (_, Some(first)) if first.blocked => Problem::AbnormalUsageDetected,
        _ => Problem::QuotaExceeded,
    };
    let shown = Row::tightest(refusing.by_ref().filter(|row| row.limit.disclose));
    let quota = shown.map(|row| Quota::new(row.outcome.limit, row.window_us, row.burst));
    (problem, quota)
}

/// The refusal of a verdict.
pub(crate) fn build_refusal(
    verdict: &Verdict<'_>,
    headers: RateLimitHeaders,
    template: Option<&Template>,
    unverified: Option<Unverified>,
) -> Refusal {
    let for_token = verdict.rows.iter().any(|row| row.refuses() && row.unverified);
    let named = |row: &&Row<'_>| row.refuses() && row.limit.disclose;
    let (problem, quota) = problem_of(verdict);
    Refusal {
        status: StatusCode::from_u16(refusal_status(verdict))
            .unwrap_or(StatusCode::TOO_MANY_REQUESTS),
        retry_after_s: verdict.retry_after_us.map(retry_after_seconds),
        source: verdict.source,
        limits: verdict.rows.iter().filter(named).map(|row| row.limit.name.clone()).collect(),
        // The figures of a limit do not explain a bad token.
        quota: quota.filter(|_| !for_token),
        headers,
        unverified: unverified.filter(|_| for_token),
        problem,
        template: template.cloned(),
    }
}

impl Refusal {
    /// The response, in the format that the request's headers ask for.
    pub fn into_response(self, request: &HeaderMap) -> Response<Bytes> {
        let form = RefusalFormat::of(request);
        let (status, kind, body) = match (form, &self.template) {
            (RefusalFormat::Grpc, _) => (StatusCode::OK, "application/grpc".into(), String::new()),
            (_, Some(template)) => {
                (self.status, template.content_type.to_string(), self.fill(template))
            }
            (RefusalFormat::Json, None) => (self.status, "application/json".into(), self.json()),
            (RefusalFormat::Problem, None) => {
                (self.status, Problem::MEDIA_TYPE.into(), self.problem())
            }
        };
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        if let Ok(kind) = HeaderValue::from_str(&kind) {
            headers.insert(CONTENT_TYPE, kind);
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if form == RefusalFormat::Grpc {
            let (code, text) = match self.status.as_u16() {
                503 if self.is_shed() => ("14", "the service is overloaded"),
                503 => ("14", "the rate limit could not be decided"),
                _ if self.unverified.is_some() => ("8", "the bearer token did not verify"),
                _ => ("8", "rate limit exceeded"),
            };
            headers.insert(GRPC_STATUS, HeaderValue::from_static(code));
            headers.insert(GRPC_MESSAGE, HeaderValue::from_static(text));
        }
        self.write_headers(headers);
        response
    }

    /// Writes the headers of a refusal: those of [`headers`](Self::headers), and
    /// `X-Tollgate-Reason` if the token caused it.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        self.headers.write(headers);
        if let Some(why) = self.unverified {
            headers.insert(REASON, HeaderValue::from_static(why.as_str()));
        }
    }

    /// RFC 9457, of the type that fits.
    pub fn problem(&self) -> String {
        let mut out = String::new();
        let names = self.limits.iter().map(|name| &**name);
        let (status, wait) = (self.status.as_u16(), self.retry_after_s);
        self.problem.render_refusal(status, names, wait, self.quota.as_ref(), &mut out);
        if let Some(why) = self.unverified
            && out.pop().is_some()
        {
            let _ = write!(out, ",\"detail\":\"{why}\",{}}}", token_members(why));
        } else if self.is_shed() && out.pop().is_some() {
            let _ = write!(out, ",{}}}", self.shed_members());
        }
        out
    }

    /// Whether the upstream is too busy for this request, regardless of the client's quota.
    pub fn is_shed(&self) -> bool {
        self.source == Source::Shed
    }

    /// The members of a body that tell a client what to do.
    fn shed_members(&self) -> String {
        let wait_s = self.retry_after_s.unwrap_or(1);
        format!(
            "\"error\":\"overloaded\",\"message\":\"The service is overloaded. Retry after {wait_s} seconds.\",\"retry_after\":{wait_s}"
        )
    }

    fn json(&self) -> String {
        if let Some(why) = self.unverified {
            return format!("{{{}}}", token_members(why));
        }
        if self.is_shed() {
            return format!("{{{}}}", self.shed_members());
        }
        let mut out = String::from("{");
        refusal_members(self.retry_after_s, &mut out);
        out.push('}');
        out
    }

    fn fill(&self, template: &Template) -> String {
        let mut out = String::with_capacity(template.body.len() + 64);
        let mut rest = &*template.body;
        while let Some(at) = rest.find('{') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let place = rest.find('}').map(|end| &rest[..=end]).unwrap_or("{");
            // Writing to a string cannot fail.
            let _ = match place {
                "{status}" => write!(out, "{}", self.status.as_u16()),
                "{retry_after}" => push_number(&mut out, self.retry_after_s),
                "{limit}" => push_number(&mut out, self.quota.map(|quota| quota.limit)),
                "{window}" => push_number(&mut out, self.quota.and_then(|quota| quota.window_s)),
                "{limits}" => {
                    escape(&self.limits.join(", "), &template.content_type, &mut out);
                    Ok(())
                }
                _ => {
                    out.push('{');
                    rest = &rest[1..];
                    continue;
                }
            };
            rest = &rest[place.len()..];
        }
        out.push_str(rest);
        out
    }
}

/// The members of a body that tell a client with an invalid token how to proceed.
fn token_members(why: Unverified) -> String {
    format!("\"error\":\"rate_limit_exceeded\",\"message\":\"{why}\",\"retry_after\":null")
}

/// Appends a number, if there is one.
fn push_number(out: &mut String, figure: Option<u64>) -> std::fmt::Result {
    match figure {
        Some(figure) => write!(out, "{figure}"),
        None => Ok(()),
    }
}

const REASON: HeaderName = HeaderName::from_static("x-tollgate-reason");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Appends names of limits, escaped for the format.
fn escape(text: &str, content_type: &str, out: &mut String) {
    let is_markup = content_type.contains("html") || content_type.contains("xml");
    for character in text.chars() {
        match character {
            '"' | '\\' if content_type.contains("json") => out.extend(['\\', character]),
            '<' if is_markup => out.push_str("&lt;"),
            '>' if is_markup => out.push_str("&gt;"),
            '&' if is_markup => out.push_str("&amp;"),
            _ => out.push(character),
        }
    }
}

/// The form of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalFormat {
    /// RFC 9457.
    Problem,
    /// A plain object, for clients whose `Accept` names application/json.
    Json,
    /// A status in trailers, for gRPC.
    Grpc,
}

impl RefusalFormat {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let is_grpc = content_type
            .get(..16)
            .is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/grpc"));
        // gRPC-Web and other types with the same prefix encode their trailers differently.
        if is_grpc && matches!(content_type.get(16), None | Some(b'+' | b';' | b' ')) {
            return Self::Grpc;
        }
        let lines = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut json = false;
        for range in lines.flat_map(|line| line.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let is_refused = parts.any(is_zero);
            if is_refused {
                continue;
            }
            if kind.eq_ignore_ascii_case("application/problem+json") {
                return Self::Problem;
            }
            json |= kind.eq_ignore_ascii_case("application/json");
        }
        if json { Self::Json } else { Self::Problem }
    }
}

/// Whether a parameter is a weight of zero.
fn is_zero(parameter: &str) -> bool {
    let Some((name, weight)) = parameter.split_once('=') else { return false };
    let weight = weight.trim();
    name.trim().eq_ignore_ascii_case("q")
        && weight.starts_with('0')
        && weight.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}

impl Ambiguity {
    /// Answers 400 with a problem that names the ambiguous part.
    pub fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(self.problem()));
        *response.status_mut() = StatusCode::BAD_REQUEST;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(Problem::MEDIA_TYPE));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// The problem as JSON.
    pub fn problem(&self) -> String {
        format!(
            "{{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,\"detail\":\"{self}\"}}"
        )
    }
}
