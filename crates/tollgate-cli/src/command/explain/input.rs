//! The request on the command line.

use crate::command::{Stop, admin};
use std::io;
use std::net::IpAddr;

/// The request to explain.
#[derive(clap::Args)]
pub(super) struct RequestArguments {
    /// The user
    #[arg(long)]
    user: Option<String>,

    /// The path, with a query if it has one
    #[arg(long)]
    path: Option<String>,

    /// The method
    #[arg(long)]
    method: Option<String>,

    /// The host
    #[arg(long)]
    host: Option<String>,

    /// The client's address, regardless of proxies
    #[arg(long)]
    ip: Option<String>,

    /// The address of the peer: with `trusted_proxies`, the client's address is found behind it
    #[arg(long)]
    pub(super) peer: Option<IpAddr>,

    /// The API key; `-` reads it from standard input, since every user of the machine can read
    /// arguments
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,

    /// The tier
    #[arg(long)]
    tier: Option<String>,

    /// A header, as 'Name: value'; repeatable
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,

    /// A cookie; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = admin::attribute)]
    cookie: Vec<(String, String)>,

    /// A claim of a verified token, such as sub=42; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = admin::attribute)]
    claim: Vec<(String, String)>,

    /// Any attribute, as in the check API, such as tenant=acme; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = admin::attribute)]
    attribute: Vec<(String, String)>,

    /// The units that the request costs
    #[arg(long, default_value_t = 1)]
    pub(super) cost: u64,
}

impl RequestArguments {
    /// Returns names and values, as for `GET /v1/explain`.
    pub(super) fn attributes(&self) -> Result<Vec<(String, String)>, Stop> {
        let api_key = match self.api_key.as_deref() {
            Some("-") => Some(read_line("--api-key")?),
            given => given.map(str::to_owned),
        };
        let plain = [
            ("user", self.user.clone()),
            ("path", self.path.clone()),
            ("method", self.method.clone()),
            ("host", self.host.clone()),
            ("ip", self.ip.clone()),
            ("api_key", api_key),
            ("tier", self.tier.clone()),
        ];
        let plain = plain.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let of = |prefix: &'static str, given: &[(String, String)]| -> Vec<(String, String)> {
            given.iter().map(|(name, value)| (format!("{prefix}.{name}"), value.clone())).collect()
        };
        let mut all: Vec<(String, String)> = plain.collect();
        all.extend(of("header", &self.header));
        all.extend(of("cookie", &self.cookie));
        all.extend(of("jwt", &self.claim));
        all.extend(self.attribute.iter().cloned());
        for (at, (name, _)) in all.iter().enumerate() {
            if all[..at].iter().any(|(known, _)| known == name) {
                return Err(Stop::Unusable(format!("{name} is given twice")));
            }
        }
        Ok(all)
    }

    /// Whether the request may have a token.
    pub(super) fn has_token(&self) -> bool {
        self.header.iter().any(|(name, _)| name == "authorization")
            || self.attribute.iter().any(|(name, _)| name == "header.authorization")
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        }
        _ => Err("write 'Name: value', such as 'X-Plan: pro'".to_owned()),
    }
}

/// Reads a line of standard input, without its end.
pub(super) fn read_line(what: &str) -> Result<String, Stop> {
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    read.map_err(|error| Stop::Unusable(format!("{what}: cannot read standard input: {error}")))?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
