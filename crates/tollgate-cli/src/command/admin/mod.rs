//! `tollgate admin`: inspects and controls a running node, over its admin API.

mod client;
mod events;
mod key_argument;
mod target;
mod text;

use super::{FAILED, Stop, UNUSABLE, print, word};
use clap::{Subcommand, ValueEnum};
pub(super) use client::{AdminResponse, Client, ClientError};
pub(super) use events::{EventReader, ServerEvent};
use key_argument::Key;
pub(super) use key_argument::{attribute, percent_encoded};
use serde_json::{Value, json};
use std::process::ExitCode;
pub(super) use target::{Target, VARIABLE as URL_VARIABLE};
pub(super) use text::{list, problem, text as value_text};

/// Inspect and control a running tollgate
///
/// The command calls the admin API. The token comes from the environment variable
/// TOLLGATE_ADMIN_TOKEN or from a file. It is never an argument, since every user of the machine
/// can read arguments.
///
/// Exit status: 0 done, 1 refused by the node, 2 no connection or bad token.
#[derive(clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Admin {
    #[command(flatten)]
    target: Target,

    /// The output format
    #[arg(long, global = true, value_enum, default_value_t = AdminFormat::Text)]
    format: AdminFormat,

    #[command(subcommand)]
    call: AdminCommand,
}

const EXAMPLES: &str = "\
Examples:
  tollgate admin status
  tollgate admin inspect user=42 ip=192.0.2.7
  tollgate admin block user=42 --for 10m
  tollgate admin mode per-user off
  tollgate admin mode per-user clear
  tollgate admin mode '*' shadow --scope node";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AdminFormat {
    /// Tables, for people
    Text,
    /// JSON of the API, for scripts
    Json,
}

#[derive(Subcommand)]
enum AdminCommand {
    /// Say whether the node is ready, and if not, why; needs no token
    Status,
    /// Show the policy in force
    Policy,
    /// Show a key's usage under every limit
    Inspect(Key),
    /// Reset a key: counts, penalties, blocks
    Reset(Key),
    /// Refuse all requests of a key for a while
    Block {
        #[command(flatten)]
        key: Key,
        /// The length of the block, such as 10m
        #[arg(long = "for", value_name = "DURATION")]
        duration: String,
    },
    /// End every block of a key
    Unblock(Key),
    /// Override a limit's mode on all nodes of the store, until it is cleared
    ///
    /// Other nodes follow within a second. The override outlives restarts, reloads and outages of
    /// the store. Of several overrides for one limit, the last one counts; an override for one node
    /// takes precedence over one for all nodes. With the memory store, an override is for one node
    /// and ends with it.
    Mode {
        /// The limit; the name of an entry with `keys`, for all its limits; or '*' for all limits
        limit: String,
        /// The new mode
        mode: Mode,
        /// The nodes: all of the store (the default), or only the one that is called
        #[arg(long, value_enum)]
        scope: Option<Scope>,
    },
    /// Read the policy file again
    Reload,
    /// Print the metrics; needs no token
    Metrics,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// The limit refuses requests
    Enforce,
    /// Refusals are only reported
    Shadow,
    /// The limit is not evaluated
    Off,
    /// Remove the override
    Clear,
}

#[derive(Clone, Copy, ValueEnum)]
enum Scope {
    /// All nodes of the store
    Fleet,
    /// Only the node that is called, until it ends
    Node,
}

impl Admin {
    pub(crate) fn run(&self) -> Result<ExitCode, Stop> {
        let (method, path, body) = self.call.request();
        let answer = self.target.client()?.call(method, &path, body.as_ref())?;
        let status = match answer.status {
            200..300 => 0,
            401 | 403 | 429 => UNUSABLE,
            _ => FAILED,
        };
        match self.format {
            AdminFormat::Json => print(answer.body, status),
            AdminFormat::Text if self.call.is_answered_by(&answer) => {
                print(self.call.text(&answer), status)
            }
            AdminFormat::Text => {
                eprint!("{}", text::problem(&answer));
                Ok(ExitCode::from(status))
            }
        }
    }
}

impl AdminCommand {
    fn request(&self) -> (&'static str, String, Option<Value>) {
        let post = |path: &str, body: Value| ("POST", path.to_owned(), Some(body));
        match self {
            Self::Status => ("GET", "/readyz".to_owned(), None),
            Self::Policy => ("GET", "/v1/policy".to_owned(), None),
            Self::Metrics => ("GET", "/metrics".to_owned(), None),
            Self::Inspect(key) => post("/v1/inspect", key.body()),
            Self::Reset(key) => post("/v1/reset", key.body()),
            Self::Unblock(key) => post("/v1/unblock", key.body()),
            Self::Block { key, duration } => {
                let mut body = key.body();
                body["for"] = duration.as_str().into();
                post("/v1/block", body)
            }
            Self::Reload => post("/v1/reload", json!({})),
            Self::Mode { limit, mode, scope } => {
                let limit = key_argument::percent_encoded(limit);
                let scope = scope.map(|scope| format!("?scope={}", word(scope)));
                let path = format!("/v1/limits/{limit}/mode{}", scope.unwrap_or_default());
                match mode {
                    Mode::Clear => ("DELETE", path, None),
                    mode => ("PUT", path, Some(json!({"mode": word(*mode)}))),
                }
            }
        }
    }

    /// Whether the response answers the command. For `status`, a node that is not ready answers 503
    /// with a complete body.
    fn is_answered_by(&self, answer: &AdminResponse) -> bool {
        let is_status = matches!(self, Self::Status) && answer.json()["ready"].is_boolean();
        is_status || (200..300).contains(&answer.status)
    }

    fn text(&self, answer: &AdminResponse) -> String {
        match self {
            Self::Metrics => answer.body.clone(),
            Self::Status => text::status(&answer.json()),
            Self::Policy => text::policy(&answer.json()),
            Self::Inspect(_) => text::inspected(&answer.json()),
            Self::Reset(_) => text::changed("reset", &answer.json()),
            Self::Block { .. } => text::changed("blocked", &answer.json()),
            Self::Unblock(_) => text::changed("unblocked", &answer.json()),
            Self::Mode { .. } => text::mode(&answer.json()),
            Self::Reload => text::reloaded(&answer.json()),
        }
    }
}
