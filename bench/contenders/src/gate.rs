//! Tollgate from facts to verdict: selects limits and decides.

use crate::{Arrivals, Contender, Limit, ours};
use tollgate::engine::{Gate, GateBuffers, GateSetup, limit};
use tollgate_policy::facts::FactsBuffer;
use tollgate_policy::match_spec::{Condition, MatchSpec};
use tollgate_policy::policy::{PolicyOptions, Selection};
use tollgate_store::memory::MemoryOptions;
use tollgate_store::{MemoryStore, ProcessClock};

/// A gate with many limits, each on its own path; one applies to a request.
#[derive(Debug)]
pub struct Whole {
    name: &'static str,
    gate: Gate,
    paths: Vec<String>,
    /// Whether only the selection is measured, without the store.
    select_only: bool,
}

impl Whole {
    /// Creates the whole engine with `limits` limits.
    pub fn new(name: &'static str, limit: Limit, limits: usize) -> Self {
        let params = ours::gcra_params(limit);
        let specs = (0..limits).map(|n| {
            let attribute = "path".to_owned();
            let patterns = vec![format!("/service-{n:04}/**")];
            let conditions = vec![Condition { attribute, patterns }];
            let limit = limit::Limit::new(&format!("limit-{n}"), &["user"], Some(params));
            (limit, MatchSpec { conditions, not: vec![] })
        });
        let setup = GateSetup::new(specs.collect(), PolicyOptions::default());
        let store = MemoryStore::new(MemoryOptions::default().max_bytes(4 << 30));
        // A stride coprime to every number of limits here, so that paths and limits have different
        // orders.
        let paths = (0..limits).map(|n| format!("/service-{:04}/items/42", n * 7 % limits));
        let gate = Gate::new(setup, store).expect("the patterns are valid");
        Self { name, gate, paths: paths.collect(), select_only: false }
    }

    /// Measures only the selection: facts in, charges out.
    pub fn select_only(self) -> Self {
        Self { select_only: true, ..self }
    }
}

impl Contender for Whole {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        let (mut buffer, mut work) = (FactsBuffer::default(), GateBuffers::default());
        let mut selection = Selection::default();
        let mut paths = self.paths.iter().cycle();
        let rules = self.gate.rules();
        let policy = rules.policy();
        let ids = policy.attribute("user").zip(policy.attribute("path"));
        let (user, path) = ids.expect("every limit uses both");
        arrivals.admit(|key| {
            let mut facts = policy.facts(std::mem::take(&mut buffer));
            let set = facts
                .set_id(user, key)
                .and_then(|()| paths.next().map_or(Ok(()), |next| facts.set_id(path, next)));
            let admitted = if self.select_only {
                policy.select(&facts, 1, &mut selection);
                policy.selected(&selection).next().is_some()
            } else {
                let verdict =
                    self.gate.check(&rules, ProcessClock.now_us(), &facts, 1, &mut work).now();
                let allowed = verdict.allowed;
                work.recycle(verdict);
                allowed
            };
            buffer = facts.into_buffer();
            set.is_ok() && admitted
        })
    }
}
