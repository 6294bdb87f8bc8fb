//! A collector: takes OTLP over HTTP on a real socket.

use super::TraceOptions;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::watch;

pub(super) struct Collector {
    address: SocketAddr,
    requests: Receiver<ExportRequest>,
    may_answer: watch::Sender<bool>,
}

pub(super) struct ExportRequest {
    pub(super) line: String,
    pub(super) content_type: String,
    pub(super) body: Bytes,
}

impl Collector {
    pub(super) fn start() -> Self {
        let collector = Self::silent();
        collector.answer();
        collector
    }

    /// Takes requests and answers none until it is told to.
    pub(super) fn silent() -> Self {
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

    pub(super) fn answer(&self) {
        self.may_answer.send_replace(true);
    }

    pub(super) fn options(&self) -> TraceOptions {
        let read = |name: &str| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(format!("http://{}", self.address)),
            "OTEL_EXPORTER_OTLP_TIMEOUT" => Some("3600000".into()),
            _ => None,
        };
        TraceOptions::read(read).unwrap().unwrap()
    }

    /// What has come so far.
    pub(super) fn requests(&self) -> Vec<ExportRequest> {
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
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let _ = taken.send(ExportRequest { line, content_type, body });
                let _ = answers.wait_for(|may| *may).await;
                Ok::<_, Infallible>(http::Response::new(Full::<Bytes>::default()))
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

impl ExportRequest {
    fn decoded(&self) -> ExportTraceServiceRequest {
        ExportTraceServiceRequest::decode(self.body.clone()).unwrap()
    }

    pub(super) fn spans(&self) -> Vec<Span> {
        let scopes = self.decoded().resource_spans.into_iter().flat_map(|spans| spans.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }

    pub(super) fn service(&self) -> String {
        let resource = self.decoded().resource_spans.remove(0).resource.unwrap();
        text(&resource.attributes, "service.name")
    }
}

/// An attribute as text.
pub(super) fn attribute(span: &Span, name: &str) -> String {
    text(&span.attributes, name)
}

fn text(attributes: &[KeyValue], name: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == name);
    match found.and_then(|attribute| attribute.value.clone()) {
        Some(AnyValue { value: Some(Value::StringValue(text)) }) => text,
        Some(AnyValue { value: Some(Value::BoolValue(is)) }) => is.to_string(),
        Some(AnyValue { value: Some(Value::IntValue(number)) }) => number.to_string(),
        other => panic!("{name}: {other:?}"),
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
