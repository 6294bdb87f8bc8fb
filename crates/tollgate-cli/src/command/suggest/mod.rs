//! `tollgate suggest`: limits that fit the requests of access logs, each number with a reason.

mod advice;
mod endpoint;
mod policy;
mod rates;
mod survey;
mod text;

use super::lab::{self, LogArguments, OutputForm, Progress, RequestReader, ambiguous_note};
use super::replay::replay;
use super::{Stop, print};
use policy::Suggestion;
use rates::PeakRates;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use survey::Survey;
use tollgate_logs::{Field, InputStats, Record};

/// The log fields that a suggestion needs.
const FIELDS: [Field; 4] = [Field::Ip, Field::Method, Field::Path, Field::User];

/// Suggest limits that fit the requests of access logs
///
/// Prints a policy that passes `tollgate check` to standard output, with a reason for each number
/// as a comment. A summary goes to standard error. Reads the logs three times: for endpoints, for
/// clients and their rates, and for a replay with the suggested policy. The same logs give the same
/// policy.
#[derive(clap::Args)]
pub(crate) struct Suggest {
    /// The logs
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,

    #[command(flatten)]
    reading: LogArguments,

    /// Print no summary and no progress
    #[arg(long)]
    quiet: bool,
}

impl Suggest {
    pub(crate) fn run(&self) -> Result<ExitCode, Stop> {
        for log in &self.logs {
            let is_read_twice = log.as_os_str() != "-"
                && std::fs::metadata(log).map_err(|error| lab::unreadable(log, &error))?.is_file();
            if !is_read_twice {
                let log = log.display();
                return Err(Stop::Unusable(format!(
                    "{log} is not a file; the logs are read three times, so save a pipe first"
                )));
            }
        }
        let mut progress = Progress::start(self.quiet);
        let suggested = self.read_all(&mut progress);
        progress.clear();
        let (suggestion, policy) = suggested?;
        let text = match self.reading.output() {
            OutputForm::Table => policy.clone(),
            OutputForm::Json => format!("{:#}\n", text::json(&suggestion, &policy)),
        };
        let printed = print(text, 0);
        if !self.quiet && self.reading.output() == OutputForm::Table {
            eprint!("{}", text::summary(&suggestion));
        }
        let status = lab::input_status(&suggestion.input, 0);
        printed.map(|_| ExitCode::from(status))
    }

    /// Reads the logs three times. Returns the suggestion, and its policy with the results of the
    /// replay.
    fn read_all(&self, progress: &mut Progress) -> Result<(Suggestion, String), Stop> {
        let mut survey = Survey::default();
        let (stats, ambiguous) = self.each(progress, |record| survey.first(record))?;
        let ambiguous = ambiguous_note(ambiguous);
        if survey.requests == 0 {
            let why = ambiguous.unwrap_or_default();
            return Err(Stop::Unusable(format!(
                "the logs are not sufficient for a suggestion: {why}"
            )));
        }
        let key = survey.between();
        let mut rates = PeakRates::default();
        self.each(progress, |record| survey.second(record, key, &mut rates))?;
        let mut suggestion = Suggestion::new(survey, rates, key, stats);
        suggestion.caveats.extend(ambiguous);
        let name = Path::new("suggestion");
        let draft = suggestion.policy();
        let loaded = lab::load_text(name, draft.as_bytes(), true)?;
        let replayed = replay(&loaded, &self.logs, &self.reading, false, progress)?;
        suggestion.prove(&replayed.report(name, 3));
        let policy = suggestion.policy();
        Ok((suggestion, policy))
    }

    /// Reads the logs once. Returns their statistics and the number of ambiguous requests, which no
    /// limit would count.
    fn each(
        &self,
        progress: &mut Progress,
        mut take: impl FnMut(Record<'_>),
    ) -> Result<(InputStats, u64), Stop> {
        let options = self.reading.options(&[])?;
        let mut logs = self.reading.open(&self.logs, options.clone(), &FIELDS)?;
        let no_limits = lab::load_text(Path::new("suggestion"), b"limits: []", false)?;
        let mut reader = RequestReader::new(&no_limits, &options);
        let mut ambiguous = 0;
        let stats = lab::read_requests(&mut logs, progress, |record| {
            if reader.read(record, |facts| facts.is_some()) {
                take(record);
            } else {
                ambiguous += 1;
            }
        })?;
        Ok((stats, ambiguous))
    }
}
