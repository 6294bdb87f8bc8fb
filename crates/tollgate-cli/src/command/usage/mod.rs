//! `tollgate usage`: reports on the usage trail.

mod plot;
mod read;
mod totals;

use super::lab::unwritable;
use super::table::{plain, table};
use super::{FAILED, Stop, print};
use read::{ReadUsage, UsageFinding};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use tollgate::store::ProcessClock;
use tollgate_observe::time::{parse_rfc3339, rfc3339};
use totals::{Grouping, Totals, UnitSums};

/// Characters of a name in a table, at most; JSON and CSV have all of it.
const NAME_CHARS_MAX: usize = 64;

/// Report the units that each key used, from the files of the usage trail
#[derive(clap::Args)]
pub(crate) struct Usage {
    #[command(subcommand)]
    command: UsageCommand,
}

#[derive(clap::Subcommand)]
enum UsageCommand {
    Report(Report),
}

/// Add up the units in usage files of one or more nodes
///
/// The command also checks the chain of each node's files. On standard error, it reports missing,
/// truncated or changed files, and times whose units are missing; the status is 1 then. Rows that
/// no complete interval has are reported and not counted. The newest file of a running node has
/// no last line; the status stays 0.
#[derive(clap::Args)]
struct Report {
    /// Usage files; the order does not matter
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Group by `limit`, `tier`, or an attribute of the keys such as `user`
    #[arg(long, default_value = "limit", value_name = "WHAT")]
    by: Grouping,
    /// Leave out intervals that start earlier: a time such as 2026-11-16T10:00:00Z, a date, or a
    /// duration before now such as 24h
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<u64>,
    /// Leave out intervals that start at this time or later
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<u64>,
    /// The output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    format: ReportFormat,
    /// Also draw the units over time, as SVG
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ReportFormat {
    Table,
    Csv,
    Json,
}

/// Parses a time into microseconds since 1970.
fn parse_time(text: &str) -> Result<u64, String> {
    if let Some(time_us) = parse_rfc3339(text) {
        return Ok(time_us);
    }
    let help = "write a time such as 2026-11-16T10:00:00Z, a date, or a duration such as 24h";
    let ago_us = tollgate_policy::parse_duration_us(text).map_err(|_| help.to_owned())?;
    Ok(ProcessClock.now_us().saturating_sub(ago_us))
}

impl Usage {
    pub(crate) fn run(&self) -> Result<ExitCode, Stop> {
        let UsageCommand::Report(report) = &self.command;
        report.run()
    }
}

impl Report {
    fn run(&self) -> Result<ExitCode, Stop> {
        let is_wanted = |time_us: u64| {
            self.since.is_none_or(|since| time_us >= since)
                && self.until.is_none_or(|until| time_us < until)
        };
        let mut totals = Totals::new(self.by.clone());
        let read = ReadUsage::read(&self.files, |time_us, row| {
            if is_wanted(time_us) {
                totals.add(time_us, row);
            }
        })?;
        if let Some(choices) = totals.missing_attribute() {
            let (by, choices) = (plain(self.by.name()), plain(&choices));
            return Err(Stop::Unusable(format!("no row has `{by}`; --by takes {choices}")));
        }
        for finding in &read.findings {
            eprintln!("{finding}");
        }
        if let Some(path) = &self.plot {
            let svg = plot::svg(&totals, &read);
            std::fs::write(path, svg).map_err(|error| unwritable(path, &error))?;
        }
        let found = read.findings.iter().any(UsageFinding::is_error);
        print(self.text(&totals, &read), if found { FAILED } else { 0 })
    }

    fn text(&self, totals: &Totals, read: &ReadUsage) -> String {
        let groups = totals.groups();
        match self.format {
            ReportFormat::Table => {
                let mut rows = vec![headings(self.by.name())];
                rows.extend(groups.iter().map(|(name, sums)| cells(&shortened(name), *sums)));
                rows.push(cells("total", totals.total()));
                table(&rows)
            }
            ReportFormat::Csv => {
                let mut text = headings(self.by.name()).join(",") + "\r\n";
                for (name, sums) in groups {
                    let cells: Vec<String> =
                        cells(name, sums).iter().map(|cell| csv_cell(cell)).collect();
                    text.push_str(&(cells.join(",") + "\r\n"));
                }
                text
            }
            ReportFormat::Json => {
                let rows = groups.iter().map(|(name, sums)| {
                    let mut row = sums.to_json();
                    row[self.by.name()] = (*name).into();
                    row
                });
                let report = json!({
                    "by": self.by.name(),
                    "since": self.since.map(rfc3339),
                    "until": self.until.map(rfc3339),
                    "files": read.files,
                    "nodes": read.nodes,
                    "rows": rows.collect::<Vec<_>>(),
                    "total": totals.total().to_json(),
                    "findings": read.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
                });
                format!("{report:#}\n")
            }
        }
    }
}

/// A name for the table: a long one would make each line as long.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.into(),
    }
}

fn headings(by: &str) -> Vec<String> {
    [by, "admitted", "refused", "given_back", "used"].map(String::from).into()
}

fn cells(name: &str, sums: UnitSums) -> Vec<String> {
    let figures = [sums.admitted, sums.refused, sums.given_back, sums.used()];
    std::iter::once(name.to_owned()).chain(figures.map(|figure| figure.to_string())).collect()
}

/// Formats a cell by RFC 4180. If a spreadsheet could take the text for a formula, an apostrophe
/// precedes it.
fn csv_cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    let is_plain = !text.contains([',', '"', '\n', '\r']);
    if is_plain { text } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests;
