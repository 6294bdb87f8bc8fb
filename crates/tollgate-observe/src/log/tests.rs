use super::{LogFormat, LogLevel, capture, loss_report};

fn logged(format: LogFormat, severity: &str, events: impl FnOnce()) -> String {
    capture(format, severity.parse().unwrap(), events)
}

fn reload() {
    tracing::info!(generation = 2, file = "tollgate.yaml", "policy replaced");
}

#[test]
fn json_is_one_object_per_line_with_the_fields_beside_the_message() {
    let text = logged(LogFormat::Json, "info", || {
        reload();
        tracing::warn!("two\nlines");
    });
    let rows: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["level"], "INFO");
    assert_eq!(rows[0]["message"], "policy replaced");
    assert_eq!(rows[0]["generation"], 2);
    assert_eq!(rows[0]["file"], "tollgate.yaml");
    assert!(rows[0]["timestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(rows[1]["message"], "two\nlines");
}

#[test]
fn text_is_a_line_without_colours() {
    let text = logged(LogFormat::Text, "info", reload);
    assert!(text.contains("INFO policy replaced generation=2 file=\"tollgate.yaml\"\n"), "{text}");
    assert_eq!((text.lines().count(), text.contains('\x1b')), (1, false));
}

#[test]
fn the_level_decides_what_is_written() {
    let all = || {
        tracing::error!("e");
        tracing::warn!("w");
        tracing::info!("i");
        tracing::debug!("d");
        tracing::trace!("t");
    };
    for (at, level) in ["error", "warn", "info", "debug", "trace"].into_iter().enumerate() {
        assert_eq!(logged(LogFormat::Text, level, all).lines().count(), at + 1, "{level}");
    }
}

#[test]
fn a_level_is_one_of_five_words() {
    assert_eq!("info".parse(), Ok(LogLevel::default()));
    for wrong in ["", "INFO", "5", "verbose", "tollgate=debug"] {
        assert!(wrong.parse::<LogLevel>().is_err(), "{wrong:?}");
    }
}

#[test]
fn libraries_are_heard_when_something_is_looked_for() {
    let event = || tracing::warn!(target: "h2::proto", "a stream was reset");
    assert_eq!(logged(LogFormat::Json, "info", event), "");
    assert!(logged(LogFormat::Json, "debug", event).contains("a stream was reset"));
}

#[test]
fn lost_lines_are_reported_at_every_level() {
    let line = loss_report(LogFormat::Json, "error".parse().unwrap(), 7);
    let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!((&line["level"], &line["lines"]), (&"ERROR".into(), &7.into()));
}
