pub(crate) mod collector;

use super::{OtlpOptions, Signal};
use std::time::Duration;

fn options(signal: Signal, variables: &[(&str, &str)]) -> Result<Option<OtlpOptions>, String> {
    let read = |name: &'static str| {
        let found = variables.iter().find(|variable| variable.0 == name);
        found.map(|variable| variable.1.to_owned())
    };
    OtlpOptions::read(signal, read).map_err(|error| error.to_string())
}

fn endpoint(variables: &[(&str, &str)]) -> Option<String> {
    options(Signal::Traces, variables).unwrap().map(|options| options.endpoint)
}

#[test]
fn the_environment_says_where_spans_go() {
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");
    let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://other:4318/mine");
    assert_eq!(endpoint(&[]), None);
    assert_eq!(endpoint(&[base]).as_deref(), Some("http://collector:4318/v1/traces"));
    assert_eq!(endpoint(&[base, traces]).as_deref(), Some("http://other:4318/mine"));
    assert_eq!(endpoint(&[base, ("OTEL_SDK_DISABLED", "true")]), None);
    assert_eq!(endpoint(&[traces, ("OTEL_TRACES_EXPORTER", "none")]), None);
    assert_eq!(endpoint(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), None);
}

#[test]
fn a_collector_that_cannot_be_reached_this_way_is_refused_by_name() {
    let wrong = |name, value, part: &str| {
        let mut variables = vec![(name, value)];
        variables.push(("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"));
        let error = options(Signal::Traces, &variables).unwrap_err();
        assert!(error.starts_with(name) && error.contains(part), "{error}");
    };
    wrong("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://collector:4318/v1/traces", "http://");
    wrong("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4318", "http://");
    wrong("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "not a url", "not a URL");
    wrong("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf");
}

#[test]
fn credentials_in_a_url_are_refused_and_not_repeated() {
    for endpoint in
        ["http://user:s3cret@collector:4318", "user:s3cret@collector", "s3cret@ not a url"]
    {
        for name in ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] {
            let error = options(Signal::Traces, &[(name, endpoint)]).unwrap_err();
            assert!(error.starts_with(name) && !error.contains("s3cret"), "{error}");
        }
    }
}

#[test]
fn metrics_have_variables_of_their_own() {
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
    let read = |variables: &[(&str, &str)]| {
        let mut all = vec![base];
        all.extend(variables);
        options(Signal::Metrics, &all)
    };
    let plain = read(&[]).unwrap().unwrap();
    assert_eq!(plain.endpoint, "http://collector:4318/v1/metrics");
    assert_eq!(plain.interval, Duration::from_secs(60));
    assert_eq!(read(&[("OTEL_METRICS_EXPORTER", "none")]), Ok(None));
    assert!(read(&[("OTEL_TRACES_EXPORTER", "none")]).unwrap().is_some());
    let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://other:4318/mine");
    let all = read(&[
        own,
        ("OTEL_METRIC_EXPORT_INTERVAL", "1500"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=1, b = two%20words ,"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "a=3"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "Cumulative"),
    ]);
    let all = all.unwrap().unwrap();
    assert_eq!((&*all.endpoint, all.interval.as_millis()), ("http://other:4318/mine", 1500));
    let header = |name: &str| all.headers[name].to_str().unwrap().to_owned();
    assert_eq!((header("a"), header("b")), ("3".to_owned(), "two words".to_owned()));
}

#[test]
fn variables_of_metrics_that_make_no_sense_are_refused_by_name() {
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
    for (name, value, part) in [
        ("OTEL_METRIC_EXPORT_INTERVAL", "0", "milliseconds"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1s", "milliseconds"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta", "cumulative"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "s3cret", "name=value"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=s3cret%zz", "name=value"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "a b=s3cret", "name=value"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://collector", "http://"),
    ] {
        let error = options(Signal::Metrics, &[base, (name, value)]).unwrap_err();
        assert!(error.starts_with(name) && error.contains(part), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
