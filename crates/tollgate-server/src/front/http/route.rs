//! Which request is which.

use super::{decode::Op, problem::Problem};
use crate::{
    front::{forward_auth, media::is_json, page::is_page},
    net::{Headers, RequestHead},
};
use hyper::Version;
use tollgate_tower::is_header;

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

    /// The route of a request, or what is wrong with its head.
    pub(super) fn of(head: &RequestHead<'_>) -> Result<Self, Problem> {
        let seen = Seen::of(&head.headers);
        if head.version == Version::HTTP_11 && seen.hosts != 1 {
            return Err(Problem::Host);
        }
        let route = Self::at(head.path()).ok_or(Problem::NoSuchPath)?;
        match route {
            Self::Op(_) if head.method != "POST" => Err(Problem::Method { allow: "POST" }),
            Self::OpenApi if head.method != "GET" => Err(Problem::Method { allow: "GET" }),
            Self::Op(_) if seen.is_page => Err(Problem::Page),
            Self::Op(_) if !is_json(seen.content_type) => Err(Problem::NotJson),
            Self::Op(_) if seen.is_encoded => Err(Problem::Encoded),
            _ => Ok(route),
        }
    }
}

/// What the headers of a request say about how it is to be taken.
#[derive(Default)]
struct Seen<'a> {
    hosts: usize,
    /// The first of its name.
    content_type: Option<&'a [u8]>,
    is_encoded: bool,
    is_page: bool,
}

impl<'a> Seen<'a> {
    /// Looks at every header once.
    fn of(headers: &Headers<'a>) -> Self {
        let mut seen = Self::default();
        for (name, value) in headers.iter() {
            let is = |known: &str| is_header(name, known);
            match name.len() {
                4 if is("host") => seen.hosts += 1,
                6 if is("origin") => seen.is_page |= is_page(value),
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
