//! Which request is which.

use super::{decode::Op, problem::Problem};
use hyper::{Method, header, http::request::Parts};

/// What can be asked of the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// An operation of the check API, with a JSON body.
    Op(Op),
    /// What the others are, for programs.
    OpenApi,
}

impl Route {
    /// What is served where.
    fn at(path: &str) -> Option<Self> {
        Some(match path {
            "/v1/check" => Self::Op(Op::Check),
            "/v1/peek" => Self::Op(Op::Peek),
            "/v1/reserve" => Self::Op(Op::Reserve),
            "/v1/settle" => Self::Op(Op::Settle),
            "/v1/cancel" => Self::Op(Op::Cancel),
            "/openapi.json" => Self::OpenApi,
            _ => return None,
        })
    }

    /// How it is asked.
    fn method(self) -> (Method, &'static str) {
        match self {
            Self::Op(_) => (Method::POST, "POST"),
            Self::OpenApi => (Method::GET, "GET"),
        }
    }

    /// The route of a request, or what is wrong with its head.
    pub(super) fn of(head: &Parts) -> Result<Self, Problem> {
        let route = Self::at(head.uri.path()).ok_or(Problem::NoSuchPath)?;
        let (method, allow) = route.method();
        if head.method != method {
            return Err(Problem::Method { allow });
        }
        match route {
            Self::Op(_) if !is_json(head) => Err(Problem::NotJson),
            _ => Ok(route),
        }
    }
}

/// Whether a body says that it is JSON, in whatever case and with whatever parameters.
fn is_json(head: &Parts) -> bool {
    let Some(value) = head.headers.get(header::CONTENT_TYPE) else { return false };
    let value = value.as_bytes();
    let essence = value.split(|&byte| byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}
