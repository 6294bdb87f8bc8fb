//! Explanations: the decision on a request, limit by limit, with reasons. Charges nothing.
//!
//! `GET /v1/explain` asks a running node; `tollgate explain --config` asks a policy file. Both take
//! a described request, read it like the gateway, and write the same view.

mod describe;
#[cfg(test)]
mod tests;
mod view;
mod words;

pub use describe::{DescribedAttribute, DescribedRequest, InvalidDescription};
pub use view::ExplanationView;

use super::decode::{AdminBody, attributes_of};
use super::query::Query;
use super::watch::top;
use super::{Admin, AdminResponse, json_response};
use crate::front::problem::Problem;
use hyper::StatusCode;

impl Admin {
    /// Explains the request described by a query.
    pub(super) async fn explain_query(
        &self,
        query: Option<&str>,
    ) -> Result<AdminResponse, Problem> {
        let mut query = Query::parse(query, &[])?;
        if query.take("at").is_some() {
            let detail = "a running node explains only the present; for another time, use `tollgate explain --config FILE --at TIME`";
            return Err(Problem::bad("at", detail));
        }
        let cost = query.take("cost").map(|cost| cost.parse::<u64>()).transpose();
        let cost = cost.map_err(|_| {
            Problem::bad("cost", "not a cost; write a number from 0 to 18446744073709551615")
        })?;
        let peer = query.take("peer").map(|peer| parse_peer(&peer)).transpose()?;
        let attributes = attributes_of(query.into_rest())?;
        self.explain(&AdminBody { attributes, cost, peer, ..AdminBody::default() }).await
    }

    /// Explains the request described by a body.
    pub(super) async fn explain(&self, body: &AdminBody) -> Result<AdminResponse, Problem> {
        let rules = self.node.gate.rules();
        let (now_us, file) = (self.node.clock.now_us(), self.node.file());
        let mut attributes = Vec::new();
        for (name, value) in &body.attributes {
            let named = [(name.clone(), value.clone())];
            let resolved = top::resolve_hashes(&self.node, &rules, &named)?;
            attributes.extend(resolved.into_iter().map(|one| DescribedAttribute {
                hash: one.is_canonical.then(|| value.clone()),
                name: one.name,
                value: one.value,
            }));
        }
        let request = DescribedRequest::new(attributes, body.peer)?;
        let paths = file.settings.ambiguous_paths();
        let mut facts = request.facts(&rules, paths, self.node.tokens().as_deref(), now_us)?;
        if !request.names_tier() {
            self.node.identify(&rules, &mut facts, now_us).await;
        }
        let cost = body.cost.unwrap_or(1);
        let explained = self.node.gate.explain(&rules, now_us, &facts, cost).await;
        let view =
            ExplanationView::new(&rules, &file.settings, &request, &facts, &explained, now_us);
        Ok(json_response(StatusCode::OK, &view))
    }
}

/// Parses the address of a peer, with or without a port.
pub(super) fn parse_peer(text: &str) -> Result<std::net::IpAddr, Problem> {
    let address = tollgate_policy::address::parse(text);
    address.map_err(|why| Problem::bad("peer", why.to_string()))
}

impl From<InvalidDescription> for Problem {
    fn from(why: InvalidDescription) -> Self {
        Self::bad(&why.field, why.detail)
    }
}
