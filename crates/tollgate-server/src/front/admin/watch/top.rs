//! `GET /v1/top`: the top keys. Also resolves hashes of keys.

use crate::front::admin::query::Query;
use crate::front::admin::{Admin, AdminResponse, change, json_response};
use crate::front::problem::Problem;
use crate::node::Node;
use hyper::StatusCode;
use tollgate::engine::Rules;
use tollgate_observe::keys::is_hash;
use tollgate_observe::top::{TopMeasure, TopQuery, TopWindow};

/// Keys per limit by default.
const COUNT: usize = 10;
/// Limit of keys per limit: as many as are tracked.
const COUNT_MAX: usize = 128;

const MEASURES: [(&str, TopMeasure); 4] = [
    ("refused", TopMeasure::Refused),
    ("admitted", TopMeasure::Admitted),
    ("near", TopMeasure::Near),
    ("shadow", TopMeasure::Shadow),
];

#[derive(Clone, Copy)]
enum TopScope {
    Node,
    Fleet,
}

impl Admin {
    /// The top keys of this node, or of all nodes.
    pub(in crate::front::admin) async fn top(
        &self,
        query: Option<&str>,
    ) -> Result<AdminResponse, Problem> {
        let mut query = Query::parse(query, &["by", "limit", "window", "count", "scope"])?;
        let by = query.take_word("by", &MEASURES)?;
        let windows = [("1m", TopWindow::Minute), ("1h", TopWindow::Hour)];
        let window = query.take_word("window", &windows)?;
        let scopes = [("node", TopScope::Node), ("fleet", TopScope::Fleet)];
        let scope = query.take_word("scope", &scopes)?;
        let count = query.take("count").map_or(Some(COUNT), |count| count.parse().ok());
        let count = count.filter(|count| (1..=COUNT_MAX).contains(count));
        let count = count.ok_or_else(|| Problem::bad("count", "write a number from 1 to 128"))?;
        let limit = query.take("limit");
        change::require_limit(&self.node.gate.rules(), limit.as_deref())?;
        let wanted = TopQuery { by, window, limit, count };
        let view = match scope {
            TopScope::Node => self.node.top_of_node(&wanted),
            TopScope::Fleet => self.node.top_of_fleet(&wanted).await.map_err(|error| {
                let detail =
                    format!("the store did not answer: {error}; `scope=node` needs no store");
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            })?,
        };
        Ok(json_response(StatusCode::OK, &view))
    }
}

/// Replaces hashes in the attributes of a call by their values.
pub(in crate::front::admin) fn resolve_hashes(
    node: &Node,
    rules: &Rules,
    attributes: &[(String, String)],
) -> Result<Vec<ResolvedAttribute>, Problem> {
    let resolve = |(name, value): &(String, String)| {
        let (name, value) = (name.clone(), value.clone());
        if !is_hash(&value) {
            return Ok(ResolvedAttribute { name, value, is_canonical: false });
        }
        match node.top.value_of_hash(node.clock.now_us(), rules, &node.keys, &name, &value) {
            Some(value) => Ok(ResolvedAttribute { name, value, is_canonical: true }),
            None => Err(Problem::new(
                StatusCode::NOT_FOUND,
                "no key among this node's top keys of the last hour has this hash; send the value instead",
            )
            .at(&format!("attributes.{name}"))),
        }
    };
    attributes.iter().map(resolve).collect()
}

/// An attribute given by an operator, by value or by hash.
pub(in crate::front::admin) struct ResolvedAttribute {
    pub(in crate::front::admin) name: String,
    pub(in crate::front::admin) value: String,
    /// Whether the value has the form of a key, not the form in which clients send it.
    pub(in crate::front::admin) is_canonical: bool,
}
