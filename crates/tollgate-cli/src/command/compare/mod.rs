//! `tollgate compare`: the requests of access logs that two policies decide differently.

mod changes;
mod picture;
mod text;

use super::lab::{self, Loaded, LogArguments, OutputForm, Progress, RequestReader, wanted};
use super::replay::Decider;
use super::{FAILED, FILE, Stop, print};
use changes::Changes;
use picture::ChangePlot;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show which requests of access logs two policies decide differently
///
/// The first two arguments are policies, the others are logs. A single policy is compared with
/// ./tollgate.yaml. The status is 0 if nothing changes, 1 if something does, 2 if a file cannot be
/// read.
#[derive(clap::Args)]
pub(crate) struct Compare {
    /// A.yaml B.yaml LOG..., or B.yaml LOG... to compare with ./tollgate.yaml
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reading: LogArguments,

    /// The number of keys to name, those with the largest change first
    #[arg(long, value_name = "N", default_value_t = 10)]
    keys: usize,

    /// Draw both policies and the changes over time, as SVG
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Print no progress
    #[arg(long)]
    quiet: bool,
}

impl Compare {
    pub(crate) fn run(&self) -> Result<ExitCode, Stop> {
        let (before, after, logs) = self.split()?;
        let (a, b) = (lab::load(before, false)?, lab::load(after, false)?);
        let mut progress = Progress::start(self.quiet);
        let mut plot = self.plot.as_ref().map(|_| ChangePlot::new([&a, &b]));
        let changes = self.decide([&a, &b], logs, plot.as_mut(), &mut progress);
        progress.clear();
        let changes = changes?;
        let names = [before, after].map(lab::file_name);
        if let (Some(plot), Some(path)) = (&plot, &self.plot) {
            let logs: Vec<String> = logs.iter().map(|log| lab::file_name(log)).collect();
            let svg = plot.svg(&format!("{}: what changes", logs.join(", ")), &names);
            std::fs::write(path, svg).map_err(|error| lab::unwritable(path, &error))?;
        }
        let text = match self.reading.output() {
            OutputForm::Table => text::table(&changes, &names, self.keys),
            OutputForm::Json => format!("{:#}\n", text::json(&changes, &names, self.keys)),
        };
        let status = if changes.any() { FAILED } else { 0 };
        print(text, lab::input_status(&changes.input, status))
    }

    /// Returns the two policies and the logs.
    fn split(&self) -> Result<(&Path, &Path, &[PathBuf]), Stop> {
        let is_policy = |path: &PathBuf| {
            path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
        };
        match &self.files[..] {
            [a, b, logs @ ..] if is_policy(b) && !logs.is_empty() => Ok((a, b, logs)),
            [_, b] if is_policy(b) => Err(Stop::Unusable("name a log after the policies".into())),
            [b, logs @ ..] if is_policy(b) => {
                // A missing file may be a policy with another name, so the error names it.
                let files = logs.iter().filter(|log| log.as_os_str() != "-");
                let missing = files.filter_map(|log| Some((log, log.metadata().err()?))).next();
                match missing {
                    Some((log, error)) => Err(lab::unreadable(log, &error)),
                    None => Ok((lab::config(None)?, b, logs)),
                }
            }
            _ => Err(Stop::Unusable(format!(
                "the first argument is a policy such as {FILE}, then come a second one and the logs"
            ))),
        }
    }

    fn decide<'l>(
        &self,
        [a, b]: [&'l Loaded; 2],
        logs: &[PathBuf],
        mut plot: Option<&mut ChangePlot>,
        progress: &mut Progress,
    ) -> Result<Changes<'l>, Stop> {
        let (mut attributes, mut fields) = wanted(&a.rules);
        let (more_attributes, more_fields) = wanted(&b.rules);
        for name in more_attributes {
            if !attributes.contains(&name) {
                attributes.push(name);
            }
        }
        fields.extend(more_fields);
        let options = self.reading.options(&attributes)?;
        let mut logs = self.reading.open(logs, options.clone(), &fields)?;
        let mut readers = [a, b].map(|loaded| RequestReader::new(loaded, &options));
        let mut deciders = [a, b].map(Decider::new);
        let mut changes = Changes::new([&a.rules, &b.rules]);
        changes.input = lab::read_requests(&mut logs, progress, |record| {
            let [reader_a, reader_b] = &mut readers;
            let [decider_a, decider_b] = &mut deciders;
            reader_a.read(record, |facts_a| {
                let of_a = facts_a.map(|facts| (facts, decider_a.decide(record, facts)));
                reader_b.read(record, |facts_b| {
                    let of_b = facts_b.map(|facts| (facts, decider_b.decide(record, facts)));
                    let decided = [&of_a, &of_b].map(|of| of.as_ref().map(|(f, v)| (*f, v)));
                    changes.count(decided);
                    if let Some(plot) = &mut plot {
                        plot.count(record.time_us(), decided.map(|of| of.map(|(_, v)| v)));
                    }
                    of_b.into_iter().for_each(|(_, verdict)| decider_b.recycle(verdict));
                });
                of_a.into_iter().for_each(|(_, verdict)| decider_a.recycle(verdict));
            });
        })?;
        Ok(changes)
    }
}
