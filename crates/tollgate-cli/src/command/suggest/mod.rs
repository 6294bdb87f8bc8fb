//! `tollgate suggest`: limits that fit the requests of access logs, each number with a reason.

mod advice;
mod endpoint;
mod policy;
mod rates;
mod survey;
mod text;

use super::lab::{self, LogArguments, OutputForm, Progress, Stop};
use super::replay::replay;
use super::{UNUSABLE, exit_code_of};
use policy::Suggestion;
use rates::PeakRates;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use survey::Survey;
use tollgate_logs::{Field, InputStats, Record};

/// The requests between two looks at the clock.
const PROGRESS_EVERY: u64 = 8_192;
/// What a record needs for a suggestion.
const FIELDS: [Field; 4] = [Field::Ip, Field::Method, Field::Path, Field::User];

/// Suggest limits that fit the requests of access logs
///
/// Prints a policy to standard output that passes `tollgate check`, with a reason for each number
/// as a comment, and a summary to standard error. Reads the logs three times: what is asked for,
/// by whom and how often, and what the suggested policy would have done. The same logs give the
/// same policy.
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
    pub(crate) fn run(&self) -> ExitCode {
        lab::exit_code(self.suggest(), UNUSABLE)
    }

    fn suggest(&self) -> Result<ExitCode, Stop> {
        if self.logs.iter().any(|log| !log.is_file()) {
            let log = self.logs.iter().find(|log| !log.is_file()).map(|log| log.display());
            let log = log.map(|log| log.to_string()).unwrap_or_default();
            return Err(Stop::Unusable(format!(
                "{log} is no file; the logs are read three times, so save a pipe first"
            )));
        }
        let mut progress = Progress::start(self.quiet);
        let suggested = self.read_all(&mut progress);
        progress.clear();
        let (suggestion, policy) = suggested?;
        let text = match self.reading.output() {
            OutputForm::Table => policy.clone(),
            OutputForm::Json => format!("{:#}\n", text::json(&suggestion, &policy)),
        };
        let written = io::stdout().lock().write_all(text.as_bytes());
        if !self.quiet && self.reading.output() == OutputForm::Table {
            eprint!("{}", text::summary(&suggestion));
        }
        Ok(exit_code_of(written, lab::input_status(&suggestion.input, ExitCode::SUCCESS)))
    }

    /// Reads the logs three times. Returns the suggestion, and its policy with the proof.
    fn read_all(&self, progress: &mut Progress) -> Result<(Suggestion, String), Stop> {
        let mut survey = Survey::default();
        let stats = self.each(progress, |record| survey.first(record))?;
        if stats.requests == 0 {
            return Err(Stop::Unusable("the logs have no requests to learn from".into()));
        }
        let key = survey.between();
        let mut rates = PeakRates::default();
        self.each(progress, |record| survey.second(record, key, &mut rates))?;
        let mut suggestion = Suggestion::new(survey, rates, key, stats);
        let name = Path::new("suggestion");
        let draft = suggestion.policy();
        let loaded = lab::load_text(name, draft.as_bytes(), true)?;
        let replayed = replay(&loaded, &self.logs, &self.reading, false, progress)?;
        suggestion.prove(&replayed.report(name, 3));
        let policy = suggestion.policy();
        Ok((suggestion, policy))
    }

    /// Reads the logs once.
    fn each(
        &self,
        progress: &mut Progress,
        mut take: impl FnMut(Record<'_>),
    ) -> Result<InputStats, Stop> {
        let mut logs = self.reading.open(&self.logs, self.reading.options(&[])?, &FIELDS)?;
        let mut requests = 0_u64;
        while let Some(record) =
            logs.next_record().map_err(|error| Stop::Unusable(error.to_string()))?
        {
            take(record);
            requests += 1;
            if requests.is_multiple_of(PROGRESS_EVERY) {
                let (read, all) = logs.progress();
                progress.show(requests, all.map(|all| (read, all)));
            }
        }
        Ok(logs.stats().clone())
    }
}
