//! Routes: the calls of the admin API by method and path.

use super::dashboard::DashboardFile;
use crate::front::problem::Problem;
use hyper::{Method, StatusCode};
use tollgate_policy::hex::percent_decode;

/// A call of the admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AdminRoute {
    Health,
    Ready,
    Metrics,
    Policy,
    Page(&'static DashboardFile),
    Top,
    Tail,
    Live,
    Inspect,
    Peek,
    Explain,
    ExplainBody,
    Reset,
    Block,
    Unblock,
    Reload,
    SetMode(String),
    ClearMode(String),
}

/// The allowed and the required members of a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyMembers {
    pub(super) allowed: &'static [&'static str],
    pub(super) required: &'static [&'static str],
}

impl AdminRoute {
    /// The route of this method and path.
    pub(super) fn find(method: &Method, path: &str) -> Result<Self, Problem> {
        let mode = path.strip_prefix("/v1/limits/").and_then(|rest| rest.strip_suffix("/mode"));
        if let Some(name) = mode {
            // Names of limits with several keys contain a slash, which may be percent-encoded or
            // not.
            let name = percent_decode(name).filter(|name| !name.is_empty()).ok_or_else(|| {
                Problem::bad("name", "the limit's name in the path is not percent-encoded UTF-8")
            })?;
            return match *method {
                Method::PUT => Ok(Self::SetMode(name)),
                Method::DELETE => Ok(Self::ClearMode(name)),
                _ => Err(Problem::wrong_method("PUT, DELETE")),
            };
        }
        let (route, is_read) = match path {
            "/healthz" => (Self::Health, true),
            "/readyz" => (Self::Ready, true),
            "/metrics" => (Self::Metrics, true),
            "/v1/policy" => (Self::Policy, true),
            "/v1/top" => (Self::Top, true),
            "/v1/tail" => (Self::Tail, true),
            "/v1/live" => (Self::Live, true),
            "/v1/explain" => match *method {
                Method::GET | Method::HEAD => (Self::Explain, true),
                Method::POST => (Self::ExplainBody, false),
                _ => return Err(Problem::wrong_method("GET, HEAD, POST")),
            },
            "/v1/inspect" => (Self::Inspect, false),
            "/v1/peek" => (Self::Peek, false),
            "/v1/reset" => (Self::Reset, false),
            "/v1/block" => (Self::Block, false),
            "/v1/unblock" => (Self::Unblock, false),
            "/v1/reload" => (Self::Reload, false),
            path => match DashboardFile::find(path) {
                Some(file) => (Self::Page(file), true),
                None => return Err(not_found(path)),
            },
        };
        match (is_read, method) {
            (true, &Method::GET | &Method::HEAD) | (false, &Method::POST) => Ok(route),
            (true, _) => Err(Problem::wrong_method("GET, HEAD")),
            (false, _) => Err(Problem::wrong_method("POST")),
        }
    }

    /// The members of the route's body; `None` for a call without a body.
    pub(super) const fn members(&self) -> Option<BodyMembers> {
        let (allowed, required): (&[&str], &[&str]) = match self {
            Self::Inspect | Self::Reset | Self::Unblock => (&["attributes", "limit"], &[]),
            Self::Peek => (&["attributes", "cost"], &["attributes"]),
            Self::ExplainBody => (&["attributes", "cost", "peer"], &["attributes"]),
            Self::Block => (&["attributes", "limit", "for"], &["for"]),
            Self::SetMode(_) => (&["mode"], &["mode"]),
            Self::Reload => (&[], &[]),
            Self::Health | Self::Ready | Self::Metrics | Self::Policy | Self::ClearMode(_) => {
                return None;
            }
            Self::Page(_) | Self::Top | Self::Tail | Self::Live | Self::Explain => return None,
        };
        Some(BodyMembers { allowed, required })
    }
}

fn not_found(path: &str) -> Problem {
    let detail = format!("unknown path {path}; docs/http-api.md lists the calls of the admin API");
    Problem::new(StatusCode::NOT_FOUND, detail).at("path")
}

#[cfg(test)]
mod tests;
