//! limitador's library with its in-memory storage.

use crate::{Arrivals, Contender, Limit};
use limitador::RateLimiter;
use limitador::limit::{Context, Namespace};
use std::collections::HashMap;

/// One limit with one variable and no condition. The capacity of the storage is set to the number
/// of keys.
pub struct Limitador {
    limiter: RateLimiter,
    namespace: Namespace,
}

impl Limitador {
    /// Enforces the burst of `limit` as a fixed window, limitador's only algorithm, with room for
    /// `keys` keys.
    pub fn new(limit: Limit, keys: usize) -> Self {
        let namespace = Namespace::from("bench");
        let limiter = RateLimiter::new(keys as u64 * 2);
        let variable = "user".try_into().expect("a variable's name is an expression");
        limiter.add_limit(limitador::limit::Limit::new(
            namespace.clone(),
            limit.burst.into(),
            limit.period_s.into(),
            vec![],
            vec![variable],
        ));
        Self { limiter, namespace }
    }
}

impl Contender for Limitador {
    fn name(&self) -> &'static str {
        "limitador"
    }

    fn run(&self, arrivals: Arrivals<'_>) -> usize {
        arrivals.admit(|key| {
            // limitador accepts values only in a map of their own.
            let context = Context::from(HashMap::from([("user".to_owned(), key.clone())]));
            let checked = self.limiter.check_rate_limited_and_update(&self.namespace, &context, 1);
            checked.is_ok_and(|checked| !checked.limited)
        })
    }
}
