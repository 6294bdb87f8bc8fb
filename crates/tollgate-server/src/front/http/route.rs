//! Routes of the check API.

use super::{decode::Op, problem::CheckProblem};
use crate::front::{browser::is_json, browser::is_public_origin, forward_auth};
use hyper::Version;
use tollgate_net::RequestHead;

/// The routes of the check API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckRoute {
    /// An operation of the check API, with a JSON body.
    Op(Op),
    /// `GET /openapi.json`.
    OpenApi,
    /// `/v1/forward-auth`.
    ForwardAuth,
}

impl CheckRoute {
    /// The route of a path.
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

    /// The route of a request, or the problem with its head.
    pub(super) fn of(head: &RequestHead<'_>) -> Result<Self, CheckProblem> {
        if head.version == Version::HTTP_11 && head.known.hosts != 1 {
            return Err(CheckProblem::Host);
        }
        let route = Self::at(head.path()).ok_or(CheckProblem::NoSuchPath)?;
        match route {
            Self::Op(_) if head.method != "POST" => Err(CheckProblem::Method { allow: "POST" }),
            Self::OpenApi if head.method != "GET" => Err(CheckProblem::Method { allow: "GET" }),
            Self::Op(_) if head.known.has_origin && is_from_page(head) => {
                Err(CheckProblem::FromWebPage)
            }
            Self::Op(_) if !is_json(head.content_type()) => Err(CheckProblem::NotJson),
            Self::Op(_) if head.known.has_content_encoding => Err(CheckProblem::ContentEncoding),
            _ => Ok(route),
        }
    }
}

/// Whether a public web page sent the request.
#[cold]
fn is_from_page(head: &RequestHead<'_>) -> bool {
    head.headers.all("origin").any(is_public_origin)
}

#[cfg(test)]
mod tests;
