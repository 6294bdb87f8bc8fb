//! Sends metrics to an OpenTelemetry collector, from a thread of its own.

#[cfg(test)]
mod tests;

use super::family_writer::FamilyWriter;
use super::otlp::OtlpBatch;
use crate::ObservedNode;
use crate::otlp::{OtlpClient, OtlpOptions, Signal, resource};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request};
use opentelemetry_sdk::Resource;
use prost::Message;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;
use tollgate::store::ProcessClock;

/// Sends the metrics of a node once per interval. It reads counters like a scrape of `/metrics`, so
/// no decision waits. Each batch is built when it is sent, so none is queued.
#[derive(Debug)]
pub struct MetricsPusher {
    stop: SyncSender<()>,
    stopped: Receiver<()>,
}

struct PushThread {
    node: Arc<dyn ObservedNode>,
    client: OtlpClient,
    options: OtlpOptions,
    resource: Resource,
    start_us: u64,
}

impl MetricsPusher {
    /// Starts the thread. `start_us` is the start of the node's counters.
    pub fn start(
        node: Arc<dyn ObservedNode>,
        start_us: u64,
        options: &OtlpOptions,
    ) -> io::Result<Self> {
        let client = OtlpClient::new(Signal::Metrics, options.timeout)?;
        let (options, resource) = (options.clone(), resource());
        let pusher = PushThread { node, client, options, resource, start_us };
        let (stop, stops) = sync_channel(1);
        let (done, stopped) = sync_channel(1);
        let run = move || {
            while stops.recv_timeout(pusher.options.interval) == Err(RecvTimeoutError::Timeout) {
                pusher.push();
            }
            pusher.push();
            let _ = done.send(());
        };
        thread::Builder::new().name("metrics".into()).spawn(run)?;
        Ok(Self { stop, stopped })
    }

    /// Sends the last metrics, and waits at most `timeout` for the collector.
    pub fn stop(self, timeout: Duration) {
        let _ = self.stop.try_send(());
        let _ = self.stopped.recv_timeout(timeout);
    }
}

impl PushThread {
    fn push(&self) {
        let mut batch = OtlpBatch::new(self.start_us, ProcessClock.now_us());
        self.node.metrics().write_families(&mut FamilyWriter(&mut batch), &self.node.snapshot());
        let body: Bytes = batch.finish(&self.resource).encode_to_vec().into();
        let request = Request::builder().method(Method::POST).uri(&*self.options.endpoint);
        // The endpoint was parsed when the options were read.
        let Ok(mut request) = request.body(body) else { return };
        let headers = request.headers_mut();
        headers.extend(self.options.headers.clone());
        let kind = HeaderValue::from_static("application/x-protobuf");
        headers.insert(CONTENT_TYPE, kind);
        // The client counts a rejected batch, and logs the first one.
        let _ = self.client.send(request);
    }
}
