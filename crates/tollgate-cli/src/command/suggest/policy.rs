//! The suggestion as a policy file, with its reasons as comments.

use super::advice::{Advice, login, per_client};
use super::rates::PeakRates;
use super::survey::{ClientKey, Survey};
use crate::command::replay::{ReplayReport, percent};
use std::fmt::Write;
use tollgate_logs::InputStats;
use tollgate_picture::axis::{format_grouped, format_offset};

const HOUR_US: u64 = 3_600_000_000;
const DAY_US: u64 = 24 * HOUR_US;
/// The most limits for logins.
const LOGINS_MAX: usize = 5;

/// Limits that fit a log.
pub(super) struct Suggestion {
    pub(super) survey: Survey,
    pub(super) rates: PeakRates,
    pub(super) key: ClientKey,
    pub(super) input: InputStats,
    pub(super) limits: Vec<SuggestedLimit>,
    /// Notes on how reliable the numbers are.
    pub(super) caveats: Vec<String>,
    has_costs: bool,
}

/// One limit of the suggestion.
pub(super) struct SuggestedLimit {
    pub(super) name: String,
    /// The method and path of the guarded endpoint; `None` for all.
    endpoint: Option<(String, String)>,
    pub(super) key: ClientKey,
    pub(super) advice: Advice,
    /// The decisions of the limit in the replay.
    pub(super) proof: Option<String>,
}

impl Suggestion {
    pub(super) fn new(survey: Survey, rates: PeakRates, key: ClientKey, input: InputStats) -> Self {
        let (first_us, last_us) = input.span_us.unwrap_or_default();
        let span_us = last_us - first_us;
        let units_max = survey.usage.iter().map(|usage| usage.units).max().unwrap_or(1);
        let has_costs = units_max > 1;
        let advice = per_client(&rates, key, units_max, span_us >= 2 * HOUR_US);
        let name = match key {
            ClientKey::User => "per-user",
            ClientKey::Ip => "per-address",
        };
        let mut limits =
            vec![SuggestedLimit { name: name.into(), endpoint: None, key, advice, proof: None }];
        let logins = survey
            .usage
            .iter()
            .enumerate()
            .filter(|(number, usage)| usage.is_login(survey.endpoints.get(*number).0));
        for (place, (number, usage)) in logins.take(LOGINS_MAX).enumerate() {
            let (method, path) = survey.endpoints.get(number);
            limits.push(SuggestedLimit {
                name: if place == 0 { "login".into() } else { format!("login-{}", place + 1) },
                endpoint: Some((method.to_owned(), path.to_owned())),
                key: ClientKey::Ip,
                advice: login(usage),
                proof: None,
            });
        }
        let caveats = caveats(&survey, &rates, key, span_us);
        Self { survey, rates, key, input, limits, caveats, has_costs }
    }

    /// Adds the results of replaying the policy on the same log.
    pub(super) fn prove(&mut self, report: &ReplayReport) {
        for limit in &mut self.limits {
            let found = report.limits.iter().find(|found| found.name == limit.name);
            limit.proof = found.map(|found| {
                let all = found.admitted + found.refused;
                let mut text = format!(
                    "replay of the same log: {} of {} requests refused ({}), {} of {} {} hit",
                    format_grouped(found.refused),
                    format_grouped(all),
                    percent(found.refused, all),
                    format_grouped(found.keys_refused),
                    format_grouped(found.keys),
                    limit.key.plural(),
                );
                if let Some(most) = found.most.first() {
                    let (refused, of) =
                        (format_grouped(most.refused), format_grouped(most.requests));
                    let key = one_line(&most.key);
                    let _ = write!(text, "; most: {key}, {refused} of {of}");
                }
                text
            });
        }
    }

    /// Writes the policy file.
    pub(super) fn policy(&self) -> String {
        let (first_us, last_us) = self.input.span_us.unwrap_or_default();
        let mut out = format!(
            "# Suggested by `tollgate suggest` from {} requests over {}.\n",
            format_grouped(self.input.requests),
            format_offset((last_us - first_us) / 1_000_000 * 1_000_000)
        );
        for caveat in &self.caveats {
            let _ = writeln!(out, "# {}", one_line(caveat));
        }
        if self.key == ClientKey::User {
            out.push_str(
                "# The log names the user that logged in. `identity` says where requests carry it:\n\
                 # identity: {user: jwt.sub}, or a header that your gateway sets.\n",
            );
        }
        out.push_str("limits:\n");
        for limit in &self.limits {
            let comments = limit.advice.reasons.iter().chain(&limit.proof);
            comments.for_each(|comment| {
                let _ = writeln!(out, "  # {}", one_line(comment));
            });
            let _ = writeln!(out, "  - name: {}", limit.name);
            if let Some((method, path)) = &limit.endpoint {
                let _ = writeln!(out, "    match: {{method: {method}, path: \"{path}\"}}");
            }
            let _ = writeln!(out, "    key: [{}]", limit.key.name());
            if limit.advice.algorithm != "sliding-window" {
                let _ = writeln!(out, "    algorithm: {}", limit.advice.algorithm);
            }
            let _ = writeln!(out, "    rate: {}/min", limit.advice.rate);
            if let Some(burst) = limit.advice.burst {
                let _ = writeln!(out, "    burst: {burst}");
            }
            if limit.endpoint.is_some() {
                out.push_str("    on_store_failure: closed\n    disclose: false\n");
            } else if self.has_costs {
                self.costs(&mut out);
            }
        }
        out
    }

    /// Appends the endpoints that cost more than one unit.
    fn costs(&self, out: &mut String) {
        out.push_str(
            "    # Responses that take longer cost more: units follow the mean time.\n    cost:\n",
        );
        for (number, usage) in
            self.survey.usage.iter().enumerate().filter(|(_, usage)| usage.units > 1)
        {
            let (method, path) = self.survey.endpoints.get(number);
            let mean_ms = usage.mean_us().unwrap_or(0) / 1_000;
            let method =
                if method.is_empty() { String::new() } else { format!("method: {method}, ") };
            let _ = writeln!(
                out,
                "      - {{match: {{{method}path: \"{path}\"}}, units: {}}}   # {} ms",
                usage.units,
                format_grouped(mean_ms)
            );
        }
    }
}

/// Returns notes on how reliable the numbers are.
fn caveats(survey: &Survey, rates: &PeakRates, key: ClientKey, span_us: u64) -> Vec<String> {
    let mut caveats = Vec::new();
    let weekend = survey.weekdays[0] || survey.weekdays[6];
    let week = survey.weekdays[1..6].iter().any(|seen| *seen);
    let unseen = match (weekend, week) {
        (false, _) => ", no weekend",
        (true, false) => ", a weekend only",
        _ => "",
    };
    if span_us < 7 * DAY_US || !unseen.is_empty() {
        let span = format_offset(span_us / 60_000_000 * 60_000_000);
        caveats.push(format!("The log covers {span}{unseen}: treat these numbers as a start."));
    }
    if 10 * survey.from_private > 9 * survey.requests && key == ClientKey::Ip {
        caveats.push(
            "Nearly all addresses are private: the log may show a proxy in place of the clients."
                .into(),
        );
    }
    if rates.untold > 0 {
        caveats.push(format!(
            "{} requests are of {} beyond the first half million and were not counted.",
            format_grouped(rates.untold),
            key.plural()
        ));
    }
    caveats
}

/// Removes control characters, so that a comment cannot end early.
fn one_line(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}'))
        .collect()
}
