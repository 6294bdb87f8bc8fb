//! The layer as its users see it.

mod axum;
mod broken;
mod build;
mod layer;
mod lives;
mod quota;
mod shed;
mod table;
mod tonic;

use std::sync::Arc;
use tollgate::MemoryStore;
use tollgate::engine::{Gate, GateSetup, policy};
use tollgate::store::Clock;
use tollgate_tower::{Standalone, TollgateLayer};

const NOW_US: u64 = 1_794_744_018_000_000;

fn gate(policy: &str) -> Gate {
    let compiled =
        policy::compile(policy.as_bytes()).unwrap_or_else(|errors| panic!("{policy}: {errors:#?}"));
    Gate::new(GateSetup::of(&compiled), MemoryStore::default()).unwrap()
}

/// A layer with this policy and clock.
fn layer(policy: &str, clock: impl Clock + 'static) -> TollgateLayer {
    TollgateLayer::over(Arc::new(Standalone::new(gate(policy)).with_clock(clock)))
}
