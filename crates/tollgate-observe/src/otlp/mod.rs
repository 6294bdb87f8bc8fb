//! OTLP: sends spans and metrics to an OpenTelemetry collector, if the environment names one.
//!
//! No request waits for the collector. Each signal has a thread of its own, sends one batch at a
//! time, and counts rejected batches.

mod client;
mod options;
#[cfg(test)]
pub(crate) mod tests;

pub use client::OtlpClient;
pub use options::{InvalidOtlpOptions, OtlpOptions};

use opentelemetry::Key;
use opentelemetry_sdk::Resource;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The kind of data that is sent to a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A span for each decision.
    Traces,
    /// The metrics of `/metrics`.
    Metrics,
}

impl Signal {
    /// All signals.
    pub const ALL: [Self; 2] = [Self::Traces, Self::Metrics];

    /// The name of the signal in paths and in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }
}

static LOST_BATCHES: [AtomicU64; Signal::ALL.len()] = [const { AtomicU64::new(0) }; 2];

/// Batches of this process that were not delivered.
pub fn lost_batches(signal: Signal) -> u64 {
    LOST_BATCHES[signal as usize].load(Relaxed)
}

/// The OTLP resource: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, else the name `tollgate`.
/// `service.instance.id` tells the counters of two processes apart.
pub fn resource() -> Resource {
    const INSTANCE: &str = "service.instance.id";
    static INSTANCE_ID: LazyLock<String> = LazyLock::new(|| {
        let mut id = [0; 16];
        // Without random numbers all processes have the same id, as programs without this attribute
        // do.
        let _ = getrandom::fill(&mut id);
        format!("{:032x}", u128::from_be_bytes(id))
    });
    let found = Resource::builder().build();
    let named = |name| found.get_ref(&Key::from_static_str(name)).map(|value| value.as_str());
    let mut resource = Resource::builder();
    if named("service.name").is_none_or(|name| name.starts_with("unknown_service")) {
        resource = resource.with_service_name("tollgate");
    }
    if named(INSTANCE).is_none() {
        resource = resource.with_attribute(opentelemetry::KeyValue::new(INSTANCE, &**INSTANCE_ID));
    }
    resource.build()
}
