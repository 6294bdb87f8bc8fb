//! `tollgate tail`.

use super::Stop;
use super::admin::{ClientError, Target, attribute, percent_encoded};
use super::table::plain;
use clap::ValueEnum;
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;
use tollgate_observe::escape::escape_json;

/// Watch decisions as they happen
///
/// The command streams the decisions of a running node from its admin API. The node never waits for
/// a reader: if decisions come too fast, some are skipped, and standard error says how many.
///
/// Each line is the decision of one limit on one request. Keys are hashed, unless the limit has
/// `show_keys: true`; `tollgate admin inspect user=~HASH` accepts a hash.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Tail {
    #[command(flatten)]
    target: Target,

    /// Only keys with these attributes, such as ip=192.0.2.7
    #[arg(value_name = "NAME=VALUE", value_parser = attribute)]
    attributes: Vec<(String, String)>,

    /// Only refusals, including those of limits in shadow mode
    #[arg(long)]
    refused: bool,

    /// Only this limit, or all limits of an entry with `keys`
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,

    /// Only keys of this user: short for user=VALUE
    #[arg(long, value_name = "VALUE")]
    user: Option<String>,

    /// Only a share of the decisions, such as 1%
    #[arg(long, value_name = "SHARE")]
    sample: Option<String>,

    /// Stop after N decisions
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    /// The output format
    #[arg(long, value_enum, default_value_t = TailFormat::Text)]
    format: TailFormat,
}

const EXAMPLES: &str = "\
Examples:
  tollgate tail --refused --limit login
  tollgate tail --user 42 --format json
  tollgate tail ip=192.0.2.7 --sample 1%";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TailFormat {
    /// A line of text for each decision
    Text,
    /// A JSON object for each decision
    Json,
}

impl Tail {
    fn path(&self) -> String {
        let mut parameters: Vec<(&str, &str)> = Vec::new();
        if self.refused {
            parameters.push(("refused", "true"));
        }
        parameters.extend(self.limit.as_deref().map(|limit| ("limit", limit)));
        parameters.extend(self.user.as_deref().map(|user| ("user", user)));
        parameters.extend(self.sample.as_deref().map(|sample| ("sample", sample)));
        parameters.extend(self.attributes.iter().map(|(name, value)| (&**name, &**value)));
        let encoded: Vec<String> = parameters
            .into_iter()
            .map(|(name, value)| format!("{}={}", percent_encoded(name), percent_encoded(value)))
            .collect();
        format!("/v1/tail?{}", encoded.join("&"))
    }

    /// Follows until the count is reached, the output is closed or the stream ends.
    pub(crate) fn run(&self) -> Result<ExitCode, Stop> {
        let client = self.target.client()?;
        let runtime = client.runtime()?;
        runtime.block_on(async {
            let mut events = client.events(&self.path()).await?;
            let mut shown = 0;
            while self.count.is_none_or(|count| shown < count) {
                let Some(event) = events.next().await? else {
                    return Err(ClientError::Ended(client.authority().to_owned()).into());
                };
                if event.name == "skipped" {
                    let skipped = &event.data["decisions"];
                    eprintln!("tollgate: {skipped} decisions skipped: they came too fast, or are not in the sample");
                    continue;
                }
                let line = match self.format {
                    TailFormat::Text => text(&event.data),
                    TailFormat::Json => escape_json(&event.data.to_string()),
                };
                let mut out = io::stdout().lock();
                let written = writeln!(out, "{line}").and_then(|()| out.flush());
                written.map_err(|error| Stop::unwritten(&error))?;
                shown += 1;
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Formats a decision as one line.
fn text(decision: &Value) -> String {
    let word = |name: &str| plain(decision[name].as_str().unwrap_or_default());
    let number = |name: &str| decision[name].as_u64().unwrap_or_default();
    // The time of day in UTC, to the millisecond.
    let time = decision["time"].as_str().and_then(|time| time.get(11..23)).unwrap_or_default();
    let key = key_text(&decision["key"]);
    let mut line = format!(
        "{time} {:<14} {:<20} {:<32} {} of {} left",
        word("verdict"),
        word("limit"),
        key,
        number("remaining"),
        number("capacity")
    );
    if number("units") != 1 {
        line.push_str(&format!(", {} units", number("units")));
    }
    match decision["retry_after"].as_f64() {
        Some(wait) if wait > 0.0 => line.push_str(&format!(", retry in {wait:.1} s")),
        _ => {}
    }
    line.push_str(&format!(", {}", word("source")));
    line
}

/// Formats a key.
pub(super) fn key_text(key: &Value) -> String {
    let Some(key) = key.as_object().filter(|key| !key.is_empty()) else {
        return "(all requests)".to_owned();
    };
    let attributes: Vec<String> = key
        .iter()
        .map(|(name, value)| format!("{name}={}", plain(value.as_str().unwrap_or_default())))
        .collect();
    attributes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::text;
    use serde_json::json;

    #[test]
    fn a_decision_is_a_line_whatever_its_key_holds() {
        let line = text(&json!({
            "time": "2026-11-16T23:59:01.250000Z", "limit": "login/ip", "verdict": "refused",
            "key": {"user": "a\nb\u{1b}[2J"}, "units": 3, "capacity": 5, "remaining": 0,
            "retry_after": 12.25, "source": "memory"
        }));
        assert_eq!(
            line,
            "23:59:01.250 refused        login/ip             user=a\\nb\\u{1b}[2J               \
             0 of 5 left, 3 units, retry in 12.2 s, memory"
        );
        let shared = text(&json!({"key": {}, "units": 1, "retry_after": null}));
        assert!(shared.contains("(all requests)") && !shared.contains("units"), "{shared}");
    }
}
