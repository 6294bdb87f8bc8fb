//! Which call a method and a path are.

use super::problem::AdminProblem;
use hyper::Method;

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AdminRoute {
    Health,
    Ready,
    Metrics,
    Policy,
    Inspect,
    Reset,
    Block,
    Unblock,
    Reload,
    SetMode(String),
    ClearMode(String),
}

impl AdminRoute {
    /// The call, or why there is none.
    pub(super) fn find(method: &Method, path: &str) -> Result<Self, AdminProblem> {
        if let Some(name) =
            path.strip_prefix("/v1/limits/").and_then(|rest| rest.strip_suffix("/mode"))
        {
            let name = percent_decode(name).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| {
                AdminProblem::bad(
                    "name",
                    "the limit's name in the path is not percent-encoded UTF-8",
                )
            })?;
            return match *method {
                Method::PUT => Ok(Self::SetMode(name)),
                Method::DELETE => Ok(Self::ClearMode(name)),
                _ => Err(AdminProblem::wrong_method("PUT, DELETE")),
            };
        }
        let (route, is_read) = match path {
            "/healthz" => (Self::Health, true),
            "/readyz" => (Self::Ready, true),
            "/metrics" => (Self::Metrics, true),
            "/v1/policy" => (Self::Policy, true),
            "/v1/inspect" => (Self::Inspect, false),
            "/v1/reset" => (Self::Reset, false),
            "/v1/block" => (Self::Block, false),
            "/v1/unblock" => (Self::Unblock, false),
            "/v1/reload" => (Self::Reload, false),
            _ => return Err(AdminProblem::not_found(path)),
        };
        match (is_read, method) {
            (true, &Method::GET | &Method::HEAD) | (false, &Method::POST) => Ok(route),
            (true, _) => Err(AdminProblem::wrong_method("GET, HEAD")),
            (false, _) => Err(AdminProblem::wrong_method("POST")),
        }
    }

    /// Whether everybody may call it. What it tells is what load balancers and scrapers need, and
    /// no key.
    pub(super) const fn is_public(&self) -> bool {
        matches!(self, Self::Health | Self::Ready | Self::Metrics)
    }

    /// Whether it has a body to read.
    pub(super) const fn has_body(&self) -> bool {
        !matches!(
            self,
            Self::Health | Self::Ready | Self::Metrics | Self::Policy | Self::ClearMode(_)
        )
    }

    /// Whether it may come without a body.
    pub(super) const fn may_be_empty(&self) -> bool {
        matches!(self, Self::Reload)
    }
}

/// Undoes percent-encoding; `None` where it is broken or not UTF-8. A slash may come either way,
/// since names of limits with several keys have one.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
