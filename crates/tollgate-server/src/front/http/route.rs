//! Which request is which.

use super::{decode::Op, problem::CheckProblem};
use crate::{
    front::{forward_auth, media::is_json, page::is_public_origin},
    net::{Headers, RequestHead},
};
use hyper::Version;
use tollgate_tower::is_header;

/// What can be asked of the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckRoute {
    /// An operation of the check API, with a JSON body.
    Op(Op),
    /// What the others are, for programs.
    OpenApi,
    /// A proxy's question.
    ForwardAuth,
}

impl CheckRoute {
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

    /// The route of a request, or what is wrong with its head.
    pub(super) fn of(head: &RequestHead<'_>) -> Result<Self, CheckProblem> {
        let seen = HeaderSummary::of(&head.headers);
        if head.version == Version::HTTP_11 && seen.hosts != 1 {
            return Err(CheckProblem::Host);
        }
        let route = Self::at(head.path()).ok_or(CheckProblem::NoSuchPath)?;
        match route {
            Self::Op(_) if head.method != "POST" => Err(CheckProblem::Method { allow: "POST" }),
            Self::OpenApi if head.method != "GET" => Err(CheckProblem::Method { allow: "GET" }),
            Self::Op(_) if seen.is_from_page => Err(CheckProblem::FromWebPage),
            Self::Op(_) if !is_json(seen.content_type) => Err(CheckProblem::NotJson),
            Self::Op(_) if seen.is_encoded => Err(CheckProblem::ContentEncoding),
            _ => Ok(route),
        }
    }
}

/// What the headers of a request say about how it is to be taken.
#[derive(Default)]
struct HeaderSummary<'a> {
    hosts: usize,
    /// The first of its name.
    content_type: Option<&'a [u8]>,
    is_encoded: bool,
    is_from_page: bool,
}

impl<'a> HeaderSummary<'a> {
    /// Looks at every header once.
    fn of(headers: &Headers<'a>) -> Self {
        let mut seen = Self::default();
        for (name, value) in headers.iter() {
            let is = |known: &str| is_header(name, known);
            match name.len() {
                4 if is("host") => seen.hosts += 1,
                6 if is("origin") => seen.is_from_page |= is_public_origin(value),
                12 if is("content-type") => {
                    seen.content_type.get_or_insert(value);
                }
                16 if is("content-encoding") => seen.is_encoded = true,
                _ => {}
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests;
