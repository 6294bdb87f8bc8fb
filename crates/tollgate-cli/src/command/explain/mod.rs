//! `tollgate explain`: would this request be admitted, and why?

mod input;
mod logged;
mod text;

use super::admin::{self, Target};
use super::lab::{self, unreadable};
use super::simulate::play;
use super::{FAILED, Stop, print};
use clap::ValueEnum;
use input::RequestArguments;
use logged::LoggedLine;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tollgate_observe::time::parse_rfc3339;
use tollgate_server::front::admin::explain::{
    DescribedAttribute, DescribedRequest, ExplanationView,
};
use tollgate_server::front::http::decode;
use tollgate_store::ProcessClock;
use tollgate_tower::Verifier;

/// Explain what would happen to a request, limit by limit
///
/// For each limit, the command shows whether it applies, which condition fails, and the key with
/// the source of each part. It also shows the counts, and when the request would be admitted.
/// Nothing is charged.
///
/// With --config, or ./tollgate.yaml, the command evaluates a policy file. With --url, or
/// TOLLGATE_ADMIN_URL, a running node answers from its own counts.
///
/// The status is 0 if the request would be admitted, 1 if it would be refused, and 2 for bad input.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    #[command(flatten)]
    request: RequestArguments,

    /// A line of the decision log, whose keys become attributes and whose time is --at; `-` reads
    /// it from standard input
    #[arg(long, value_name = "JSON")]
    decision: Option<String>,

    /// The policy file; by default ./tollgate.yaml
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    config: Option<PathBuf>,

    /// The time, as 2026-11-17T08:00:00Z or Unix seconds; by default now
    #[arg(long, value_name = "TIME")]
    at: Option<String>,

    /// Decide these requests first, up to --at: rows in the format of `simulate`
    #[arg(long, value_name = "FILE.jsonl")]
    requests: Option<PathBuf>,

    /// Ask the node with this admin API
    #[arg(long)]
    url: Option<String>,

    /// A file with the token for --url, instead of TOLLGATE_ADMIN_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// The output format
    #[arg(long, value_enum, default_value_t = ExplainFormat::Table)]
    format: ExplainFormat,
}

const EXAMPLES: &str = "\
Examples:
  tollgate explain --config tollgate.yaml --user 42 --path /api/x
  tollgate explain --path /login --peer 10.0.0.1 --header 'X-Forwarded-For: 203.0.113.7'
  tollgate explain --requests today.jsonl --at 2026-11-17T08:00:00Z --user 42
  tollgate explain --url http://127.0.0.1:8090 --user 42 --path /api/x --format json
  tail -n 1 decisions.jsonl | tollgate explain --decision -";

#[derive(Clone, Copy, ValueEnum)]
enum ExplainFormat {
    /// A table, for people
    Table,
    /// An object, for programs
    Json,
}

impl Explain {
    pub(crate) fn run(&self) -> Result<ExitCode, Stop> {
        let line = self.decision.as_deref().map(LoggedLine::read).transpose()?;
        let mut attributes = self.request.attributes()?;
        if let Some(line) = &line {
            attributes.extend(line.attributes(&attributes));
        }
        let from_environment = std::env::var(admin::URL_VARIABLE).ok();
        let url = self.url.clone().or(from_environment).filter(|_| self.config.is_none());
        let mut answer = match url {
            Some(url) => self.ask_node(url, attributes)?,
            None => self.ask_file(attributes, line.as_ref())?,
        };
        if let Some(line) = line {
            answer["logged"] = line.into_value();
        }
        let text = match self.format {
            ExplainFormat::Json => format!("{answer}\n"),
            ExplainFormat::Table => text::explanation(&answer),
        };
        print(text, if answer["allowed"] == true { 0 } else { FAILED })
    }

    /// Returns the response of a running node.
    fn ask_node(&self, url: String, attributes: Vec<(String, String)>) -> Result<Value, Stop> {
        for (is_given, name) in
            [(self.at.is_some(), "--at"), (self.requests.is_some(), "--requests")]
        {
            if is_given {
                let why = "a running node explains the present, from its own counts";
                return Err(Stop::Unusable(format!("{name}: {why}; name a policy with --config")));
            }
        }
        let attributes: Map<String, Value> =
            attributes.into_iter().map(|(name, value)| (name, value.into())).collect();
        let mut body = json!({"attributes": attributes, "cost": self.request.cost});
        if let Some(peer) = self.request.peer {
            body["peer"] = peer.to_string().into();
        }
        let client = Target::new(url, self.token_file.clone()).client()?;
        let answer = client.call("POST", "/v1/explain", Some(&body))?;
        if answer.status != 200 {
            return Err(Stop::Failed(admin::problem(&answer).trim_end().to_owned()));
        }
        Ok(answer.json())
    }

    /// Evaluates a policy file, with empty counts or those that `--requests` leaves.
    fn ask_file(
        &self,
        attributes: Vec<(String, String)>,
        line: Option<&LoggedLine>,
    ) -> Result<Value, Stop> {
        let config = lab::config(self.config.as_deref())?;
        let loaded = lab::load(config, false)?;
        let mut at_us = self.at.as_deref().map(parse_time).transpose()?;
        at_us = at_us.or_else(|| line.and_then(LoggedLine::time_us));
        if let Some(requests) = &self.requests {
            let last_us = play(&loaded, requests, at_us)?;
            at_us = at_us.or(last_us);
        }
        let now_us = at_us.unwrap_or_else(|| ProcessClock.now_us());
        let attributes = attributes.into_iter().map(DescribedAttribute::from).collect();
        let request = DescribedRequest::new(attributes, self.request.peer)?;
        let verifier = self.verifier(config, &loaded)?;
        let (rules, paths) = (&loaded.rules, loaded.settings.ambiguous_paths());
        let facts = request.facts(rules, paths, verifier.as_ref(), now_us)?;
        let explain = loaded.gate.explain(rules, now_us, &facts, self.request.cost);
        // The store is in this process, so the call never waits.
        let explained = tokio::runtime::Builder::new_current_thread().build()?.block_on(explain);
        let view =
            ExplanationView::new(rules, &loaded.settings, &request, &facts, &explained, now_us);
        Ok(serde_json::to_value(&view)?)
    }

    /// Returns the keys that verify the request's token, if the file has keys and the request a
    /// token.
    fn verifier(&self, config: &Path, loaded: &lab::Loaded) -> Result<Option<Verifier>, Stop> {
        let Some(jwt) = loaded.settings.jwt.as_ref().filter(|_| self.request.has_token()) else {
            return Ok(None);
        };
        let path = config.with_file_name(&*jwt.keys);
        let bytes = std::fs::read(&path).map_err(|error| unreadable(&path, &error))?;
        let verifier = Verifier::new(jwt, &bytes);
        let failed = |why| Stop::Unusable(format!("{}: {why}", path.display()));
        verifier.map(Some).map_err(failed)
    }
}

/// Parses a time into microseconds: RFC 3339, or Unix seconds as in `simulate`.
fn parse_time(text: &str) -> Result<u64, Stop> {
    let seconds = || {
        let row = format!("{{\"time\":{text},\"attributes\":{{}}}}");
        decode::row(row.as_bytes()).ok().map(|row| row.time_us)
    };
    parse_rfc3339(text).or_else(seconds).ok_or_else(|| {
        let why = "not a time; write 2026-11-17T08:00:00Z or Unix seconds";
        Stop::Unusable(format!("--at {text}: {why}"))
    })
}
