//! A node without sockets, for tests of what sees decisions.

use crate::node::Node;
use futures_util::FutureExt;
use tollgate::engine::{Setup, Work};
use tollgate_policy::compile;

pub(super) fn node(policy: &str) -> Node {
    let compiled = compile(policy.as_bytes()).unwrap();
    let setup = Setup::of(&compiled);
    Node::new(compiled, setup).unwrap()
}

/// Whether a request with these attributes is admitted at this time.
pub(super) fn check(node: &Node, now_us: u64, attributes: &[(&str, &str)], cost: u64) -> bool {
    let rules = node.gate.rules();
    let mut facts = rules.facts(Default::default());
    attributes.iter().for_each(|(name, value)| facts.set(name, value).unwrap());
    let mut work = Work::default();
    let checked = node.gate.check(&rules, now_us, &facts, cost, &mut work);
    checked.now_or_never().unwrap().allowed
}
