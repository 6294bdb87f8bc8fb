//! A collector for tests: receives OTLP over HTTP on a real socket.

use super::{OtlpOptions, Signal};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use tokio::sync::watch;

pub(crate) struct Collector {
    address: SocketAddr,
    requests: Receiver<ExportRequest>,
    may_answer: watch::Sender<bool>,
}

pub(crate) struct ExportRequest {
    pub(crate) line: String,
    pub(crate) content_type: String,
    /// The `x-tenant` header.
    pub(crate) tenant: Option<String>,
    pub(crate) body: Bytes,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let collector = Self::silent();
        collector.answer();
        collector
    }

    /// Starts a collector that receives requests and answers none until told to.
    pub(crate) fn silent() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (taken, requests) = mpsc::channel();
        let (may_answer, answers) = watch::channel(false);
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(serve(listener, taken, answers));
        });
        Self { address, requests, may_answer }
    }

    pub(crate) fn answer(&self) {
        self.may_answer.send_replace(true);
    }

    pub(crate) fn options(&self, signal: Signal) -> OtlpOptions {
        let read = |name: &str| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(format!("http://{}", self.address)),
            "OTEL_EXPORTER_OTLP_TIMEOUT" => Some("3600000".into()),
            "OTEL_EXPORTER_OTLP_HEADERS" => Some("x-tenant=a%20b,x-other=1".into()),
            "OTEL_METRIC_EXPORT_INTERVAL" => Some("100".into()),
            _ => None,
        };
        OtlpOptions::read(signal, read).unwrap().unwrap()
    }

    /// Waits for the next batch.
    pub(crate) fn next(&self) -> ExportRequest {
        self.requests.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    /// The requests received so far.
    pub(crate) fn requests(&self) -> Vec<ExportRequest> {
        self.requests.try_iter().collect()
    }
}

async fn serve(
    listener: TcpListener,
    taken: Sender<ExportRequest>,
    answers: watch::Receiver<bool>,
) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let (taken, answers) = (taken.clone(), answers.clone());
        let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let (taken, mut answers) = (taken.clone(), answers.clone());
            async move {
                let line = format!("{} {}", request.method(), request.uri());
                let header = |name: &str| request.headers().get(name).cloned();
                let content_type = header("content-type").unwrap().to_str().unwrap().to_owned();
                let tenant = header("x-tenant").map(|value| value.to_str().unwrap().to_owned());
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let _ = taken.send(ExportRequest { line, content_type, tenant, body });
                let _ = answers.wait_for(|may| *may).await;
                Ok::<_, Infallible>(http::Response::new(Full::<Bytes>::default()))
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

impl ExportRequest {
    /// Decodes a batch of metrics.
    pub(crate) fn metrics(&self) -> ExportMetricsServiceRequest {
        ExportMetricsServiceRequest::decode(self.body.clone()).unwrap()
    }

    fn decoded(&self) -> ExportTraceServiceRequest {
        ExportTraceServiceRequest::decode(self.body.clone()).unwrap()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let scopes = self.decoded().resource_spans.into_iter().flat_map(|spans| spans.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }

    pub(crate) fn service(&self) -> String {
        let resource = self.decoded().resource_spans.remove(0).resource.unwrap();
        text(&resource.attributes, "service.name")
    }
}

/// An attribute of a span, as text.
pub(crate) fn attribute(span: &Span, name: &str) -> String {
    text(&span.attributes, name)
}

/// The attribute `name`, as text.
pub(crate) fn text(attributes: &[KeyValue], name: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == name);
    match found.and_then(|attribute| attribute.value.clone()) {
        Some(AnyValue { value: Some(Value::StringValue(text)) }) => text,
        Some(AnyValue { value: Some(Value::BoolValue(is)) }) => is.to_string(),
        Some(AnyValue { value: Some(Value::IntValue(number)) }) => number.to_string(),
        other => panic!("{name}: {other:?}"),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
