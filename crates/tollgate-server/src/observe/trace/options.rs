//! Where spans go, from the variables that every OpenTelemetry program reads.

use http::Uri;
use opentelemetry::Key;
use opentelemetry_sdk::Resource;
use std::fmt;
use std::time::Duration;

/// A collector that was configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    pub(super) endpoint: String,
    pub(super) timeout: Duration,
}

/// A variable says something that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTraceOptions {
    variable: &'static str,
    problem: String,
}

const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const TIMEOUT_MS: u64 = 10_000;

impl TraceOptions {
    /// What the environment says, through `variable`; `None` when it names no collector.
    ///
    /// # Errors
    ///
    /// When it names one that cannot be used.
    pub fn read(
        variable: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Option<Self>, InvalidTraceOptions> {
        // To these an empty variable is an absent one.
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let off = variable("OTEL_SDK_DISABLED").is_some_and(|is| is.eq_ignore_ascii_case("true"))
            || variable("OTEL_TRACES_EXPORTER").is_some_and(|exporter| exporter == "none");
        // The one for traces is the whole URL; the one for everything is where the paths begin.
        let (name, endpoint) = match (variable(TRACES), variable(BASE)) {
            _ if off => return Ok(None),
            (Some(endpoint), _) => (TRACES, endpoint),
            (None, Some(base)) => (BASE, format!("{}/v1/traces", base.trim_end_matches('/'))),
            (None, None) => return Ok(None),
        };
        let invalid = |problem| InvalidTraceOptions { variable: name, problem };
        // Before anything shows the text: what is in front of the `@` is a secret.
        if endpoint.contains('@') {
            let fix =
                "remove it, and send to a collector on this machine that knows the credentials";
            return Err(invalid(format!("a user or password in the URL is not used: {fix}")));
        }
        let uri: Uri = endpoint.parse().map_err(|_| {
            invalid(format!("`{endpoint}` is not a URL, such as http://127.0.0.1:4318"))
        })?;
        if uri.scheme_str() != Some("http") || uri.host().is_none() {
            let fix = "give http:// and a host; for TLS, send to a collector on this machine that forwards";
            return Err(invalid(format!("`{endpoint}` is not an http:// URL: {fix}")));
        }
        for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            if let Some(protocol) = variable(name).filter(|protocol| protocol != "http/protobuf") {
                let problem =
                    format!("`{protocol}` is not spoken here; `http/protobuf` is, on port 4318");
                return Err(InvalidTraceOptions { variable: name, problem });
            }
        }
        let timeout = variable("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT")
            .or_else(|| variable("OTEL_EXPORTER_OTLP_TIMEOUT"))
            .and_then(|text| text.parse().ok())
            .unwrap_or(TIMEOUT_MS);
        Ok(Some(Self { endpoint, timeout: Duration::from_millis(timeout) }))
    }

    /// Who sends: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES, and `tollgate` when neither has a
    /// name.
    pub(super) fn resource() -> Resource {
        let found = Resource::builder().build();
        let name = found.get_ref(&Key::from_static_str("service.name")).map(|name| name.as_str());
        match name {
            Some(name) if !name.starts_with("unknown_service") => found,
            _ => Resource::builder().with_service_name("tollgate").build(),
        }
    }
}

impl fmt::Display for InvalidTraceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.variable, self.problem)
    }
}

impl std::error::Error for InvalidTraceOptions {}
