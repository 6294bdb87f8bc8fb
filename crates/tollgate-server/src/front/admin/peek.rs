//! `POST /v1/peek`: decides a request without charging it.

use super::decode::AdminBody;
use super::watch::top;
use super::{Admin, AdminResponse, change, response};
use crate::front::http::encode;
use crate::front::problem::Problem;
use tollgate::engine::GateBuffers;

impl Admin {
    /// The answer that the check API would give, and its status.
    pub(super) async fn peek(&self, body: &AdminBody) -> Result<AdminResponse, Problem> {
        let rules = self.node.gate.rules();
        let now_us = self.node.clock.now_us();
        let attributes = top::resolve_hashes(&self.node, &rules, &body.attributes)?;
        let paths = self.node.file().settings.http.ambiguous_paths;
        let mut facts = change::facts(&rules, &attributes, paths)?;
        self.node.identify(&rules, &mut facts, now_us).await;
        let mut gate_buffers = GateBuffers::default();
        let cost = body.cost.unwrap_or(1);
        let verdict = self.node.gate.peek(&rules, now_us, &facts, cost, &mut gate_buffers).await;
        let mut out = Vec::new();
        encode::verdict(&mut out, &verdict);
        out.extend_from_slice(format!(",\"status\":{}}}\n", encode::status(&verdict)).as_bytes());
        Ok(response("application/json", out))
    }
}
