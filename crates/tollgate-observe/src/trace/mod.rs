//! Traces: a span for each decision, sent to an OpenTelemetry collector if the environment names
//! one.
//!
//! No request waits for the collector. Spans go into a bounded queue that a separate thread
//! empties; if the queue is full, spans are dropped. Without a collector, a decision costs one
//! relaxed load.

mod span;
#[cfg(test)]
mod tests;

use super::otlp::{self, OtlpClient, OtlpOptions, Signal};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tollgate::engine::Verdict;

pub use span::{DecisionContext, bytes_hash, key_hash};

/// The traces of this process.
static PROCESS: Traces = Traces::off();

/// Sends spans to a collector once it is started.
pub struct Traces {
    on: AtomicBool,
    pipeline: OnceLock<(SdkTracerProvider, SdkTracer)>,
}

/// Traces could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot send traces: {0}")]
pub struct TraceStartError(Box<str>);

/// Starts sending this process's spans to the collector. A second call changes nothing.
///
/// # Errors
///
/// When the options are unusable.
pub fn start(options: &OtlpOptions) -> Result<(), TraceStartError> {
    PROCESS.start(options)
}

/// Whether spans are recorded: one relaxed load.
#[inline]
pub fn enabled() -> bool {
    PROCESS.enabled()
}

/// Records a decision, if spans are recorded.
#[inline]
pub fn record_decision(decided: &DecisionContext<'_>, verdict: &Verdict<'_>) {
    if enabled() {
        PROCESS.record_decision(decided, verdict);
    }
}

/// Sends the queued spans, for at most `timeout`, and ends this process's traces.
pub fn stop(timeout: Duration) {
    PROCESS.stop(timeout);
}

impl Traces {
    /// Traces without a collector.
    pub const fn off() -> Self {
        Self { on: AtomicBool::new(false), pipeline: OnceLock::new() }
    }

    /// See [`start`].
    ///
    /// # Errors
    ///
    /// When the options are unusable.
    pub fn start(&self, options: &OtlpOptions) -> Result<(), TraceStartError> {
        let client =
            OtlpClient::new(Signal::Traces, options.timeout).map_err(TraceStartError::new)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(options.endpoint.clone())
            .with_timeout(options.timeout)
            .build()
            .map_err(TraceStartError::new)?;
        // The provider reads OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG; the batch exporter
        // reads OTEL_BSP_*.
        let provider = SdkTracerProvider::builder()
            .with_resource(otlp::resource())
            .with_batch_exporter(exporter)
            .build();
        let tracer = provider.tracer("tollgate");
        if self.pipeline.set((provider, tracer)).is_ok() {
            self.on.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// See [`enabled`].
    #[inline]
    pub fn enabled(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// See [`record_decision`].
    #[cold]
    pub fn record_decision(&self, decided: &DecisionContext<'_>, verdict: &Verdict<'_>) {
        if let Some((_, tracer)) = self.pipeline.get() {
            span::record(tracer, decided, verdict);
        }
    }

    /// See [`stop`].
    pub fn stop(&self, timeout: Duration) {
        self.on.store(false, Ordering::Release);
        if let Some((provider, _)) = self.pipeline.get() {
            // The client has already logged a collector that does not answer.
            let _ = provider.shutdown_with_timeout(timeout);
        }
    }
}

impl TraceStartError {
    fn new(error: impl fmt::Display) -> Self {
        Self(error.to_string().into())
    }
}
