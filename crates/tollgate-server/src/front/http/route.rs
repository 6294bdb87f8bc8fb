//! Which request is which.

use super::{decode::Op, problem::Problem};
use crate::front::{forward_auth, media::is_json, page::sent_by_page};
use hyper::{Method, Version, header, http::request::Parts};

/// What can be asked of the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// An operation of the check API, with a JSON body.
    Op(Op),
    /// What the others are, for programs.
    OpenApi,
    /// A proxy's question.
    ForwardAuth,
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
            forward_auth::PATH => Self::ForwardAuth,
            _ => return None,
        })
    }

    /// How it is asked; `None` for any way.
    fn method(self) -> Option<(Method, &'static str)> {
        match self {
            Self::Op(_) => Some((Method::POST, "POST")),
            Self::OpenApi => Some((Method::GET, "GET")),
            Self::ForwardAuth => None,
        }
    }

    /// The route of a request, or what is wrong with its head.
    pub(super) fn of(head: &Parts) -> Result<Self, Problem> {
        if head.version == Version::HTTP_11
            && head.headers.get_all(header::HOST).into_iter().count() != 1
        {
            return Err(Problem::Host);
        }
        let route = Self::at(head.uri.path()).ok_or(Problem::NoSuchPath)?;
        if let Some((method, allow)) = route.method()
            && head.method != method
        {
            return Err(Problem::Method { allow });
        }
        match route {
            Self::Op(_) if sent_by_page(&head.headers) => Err(Problem::Page),
            Self::Op(_) if !is_json(&head.headers) => Err(Problem::NotJson),
            Self::Op(_) if head.headers.contains_key(header::CONTENT_ENCODING) => {
                Err(Problem::Encoded)
            }
            _ => Ok(route),
        }
    }
}
