//! OTLP options, from the standard environment variables of OpenTelemetry.

use super::Signal;
use http::Uri;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;
use tollgate_policy::hex::percent_decode;

/// The configuration of a collector for one signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpOptions {
    /// The address that batches are posted to.
    pub endpoint: String,
    /// The timeout of an export.
    pub timeout: Duration,
    /// The interval between two exports of metrics.
    pub interval: Duration,
    /// Headers of metrics exports. The span exporter reads those of traces itself.
    pub headers: HeaderMap,
}

/// An environment variable has an unusable value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {problem}")]
pub struct InvalidOtlpOptions {
    variable: &'static str,
    problem: String,
}

/// The variables of one signal.
struct Variables {
    endpoint: &'static str,
    protocol: &'static str,
    timeout: &'static str,
    headers: &'static str,
    exporter: &'static str,
}

const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";
const TEMPORALITY: &str = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
const TIMEOUT_MS: u64 = 10_000;
const INTERVAL_MS: u64 = 60_000;

impl Signal {
    const fn variables(self) -> Variables {
        match self {
            Self::Traces => Variables {
                endpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                protocol: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
                timeout: "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
                headers: "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                exporter: "OTEL_TRACES_EXPORTER",
            },
            Self::Metrics => Variables {
                endpoint: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                protocol: "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
                timeout: "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT",
                headers: "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
                exporter: "OTEL_METRICS_EXPORTER",
            },
        }
    }
}

impl OtlpOptions {
    /// Reads the options of a signal through `variable`; `None` if no collector is named.
    ///
    /// # Errors
    ///
    /// When a variable has an unusable value.
    pub fn read(
        signal: Signal,
        variable: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Option<Self>, InvalidOtlpOptions> {
        // For these variables, empty means absent.
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let names = signal.variables();
        let off = variable("OTEL_SDK_DISABLED").is_some_and(|is| is.eq_ignore_ascii_case("true"))
            || variable(names.exporter).is_some_and(|exporter| exporter == "none");
        // The variable of the signal is a complete URL; the general one is a base URL.
        let (name, endpoint) = match (variable(names.endpoint), variable(BASE)) {
            _ if off => return Ok(None),
            (Some(endpoint), _) => (names.endpoint, endpoint),
            (None, Some(base)) => {
                (BASE, format!("{}/v1/{}", base.trim_end_matches('/'), signal.name()))
            }
            (None, None) => return Ok(None),
        };
        check_endpoint(&endpoint)
            .map_err(|problem| InvalidOtlpOptions { variable: name, problem })?;
        for name in [names.protocol, "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            if let Some(protocol) = variable(name).filter(|protocol| protocol != "http/protobuf") {
                let problem =
                    format!("`{protocol}` is not spoken here; `http/protobuf` is, on port 4318");
                return Err(InvalidOtlpOptions { variable: name, problem });
            }
        }
        let timeout = variable(names.timeout)
            .or_else(|| variable("OTEL_EXPORTER_OTLP_TIMEOUT"))
            .and_then(|text| text.parse().ok())
            .unwrap_or(TIMEOUT_MS);
        let mut options = Self {
            endpoint,
            timeout: Duration::from_millis(timeout),
            interval: Duration::from_millis(INTERVAL_MS),
            headers: HeaderMap::new(),
        };
        if signal == Signal::Metrics {
            options.read_metrics(&variable, names.headers)?;
        }
        Ok(Some(options))
    }

    fn read_metrics(
        &mut self,
        variable: &impl Fn(&'static str) -> Option<String>,
        own_headers: &'static str,
    ) -> Result<(), InvalidOtlpOptions> {
        let invalid = |variable, problem: &str| {
            Err(InvalidOtlpOptions { variable, problem: problem.to_owned() })
        };
        if let Some(text) = variable(INTERVAL) {
            match text.parse().ok().filter(|ms| *ms > 0) {
                Some(ms) => self.interval = Duration::from_millis(ms),
                None => return invalid(INTERVAL, "give milliseconds, such as 60000"),
            }
        }
        let temporality = variable(TEMPORALITY);
        if temporality.is_some_and(|wanted| !wanted.eq_ignore_ascii_case("cumulative")) {
            let problem = "counters are `cumulative` here; the collector's `cumulativetodelta` processor converts them";
            return invalid(TEMPORALITY, problem);
        }
        for name in [HEADERS, own_headers] {
            let Some(text) = variable(name) else { continue };
            for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
                // The value is a secret: a message must not repeat it.
                let Some((header, value)) = parse_header(pair) else {
                    return invalid(name, "write `name=value`, separated by commas");
                };
                self.headers.insert(header, value);
            }
        }
        Ok(())
    }
}

fn check_endpoint(endpoint: &str) -> Result<(), String> {
    // Checked before the text can be shown: the part before `@` is a secret.
    if endpoint.contains('@') {
        let fix = "remove it, and send to a collector on this machine that knows the credentials";
        return Err(format!("a user or password in the URL is not used: {fix}"));
    }
    let uri: Uri = endpoint
        .parse()
        .map_err(|_| format!("`{endpoint}` is not a URL, such as http://127.0.0.1:4318"))?;
    if uri.scheme_str() != Some("http") || uri.host().is_none() {
        let fix =
            "give http:// and a host; for TLS, send to a collector on this machine that forwards";
        return Err(format!("`{endpoint}` is not an http:// URL: {fix}"));
    }
    Ok(())
}

/// Parses a header as in W3C Baggage: `name=value`, with a percent-encoded value.
fn parse_header(pair: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = pair.split_once('=')?;
    let decoded = percent_decode(value.trim())?;
    let mut value = HeaderValue::from_bytes(decoded.as_bytes()).ok()?;
    value.set_sensitive(true);
    Some((name.trim().parse().ok()?, value))
}
