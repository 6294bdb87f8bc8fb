//! `tollgate simulate`: decides a file of requests, each at the time in its row.

mod play;
mod row_writer;
mod session;
mod shed_plot;
mod shed_run;
mod shed_tally;
mod tally;
mod upstream;
mod writer_thread;

use super::Stop;
use super::lab::{self, Progress, file_name, unreadable, unwritable};
pub(super) use play::play;
use row_writer::RowWriter;
use session::Session;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tally::Tally;
use tollgate_logs::{Lines, NextLine};
use tollgate_server::front::http::decode::BODY_BYTES_MAX;
use upstream::UpstreamArguments;
use writer_thread::{Output, WriterClosed};

/// Try a policy on a JSONL file of requests, each at the time in its row
///
/// Each line is a JSON object: {"time": 1700000000.25, "attributes": {"user": "42"}, "cost": 1},
/// optionally with "op" (check, peek, reserve, settle or cancel), "reservation" and "ttl". Standard
/// output has a line for each, in the format of the check API; a summary goes to standard error.
/// The status is 1 if a line is invalid, 2 if a file cannot be read.
#[derive(clap::Args)]
pub(crate) struct Simulate {
    /// The policy; by default ./tollgate.yaml. State is kept in memory, whatever the store in the
    /// file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The requests, one JSON object per line; `-` reads standard input
    #[arg(long, value_name = "FILE.jsonl")]
    requests: PathBuf,

    /// Add the HTTP status and headers of each response
    #[arg(long)]
    headers: bool,

    /// Print no summary and no progress
    #[arg(long)]
    quiet: bool,

    /// Draw admitted and refused requests over time, by limit; with --workers, by class
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    upstream: UpstreamArguments,
}

impl Simulate {
    pub(crate) fn run(&self) -> Result<ExitCode, Stop> {
        let config = lab::config(self.config.as_deref())?;
        let loaded = lab::load(config, self.plot.is_some())?;
        let input = self.open()?;
        let plot = self.plot.is_some().then(|| loaded.plot());
        let writer = RowWriter::new(self.headers.then(|| loaded.profiles()));
        let tally = Tally::new(loaded.rules.policy().limits(), plot);
        let paths = loaded.settings.ambiguous_paths();
        let upstream = self.upstream.model();
        let mut session = Session::new(&loaded.gate, &loaded.rules, paths, tally, upstream);
        let mut progress = Progress::start(self.quiet);
        std::thread::scope(|scope| {
            let mut output = Output::start(scope, writer);
            let mut lines = Lines::new(input, BODY_BYTES_MAX + 1);
            let answered = self.answer(&mut lines, &mut session, &mut output, &mut progress);
            // Writes the results so far before an error is printed.
            let written = output.finish();
            answered.and(written)
        })
        .inspect_err(|_| progress.clear())?;
        progress.finish(session.tally.rows, session.summary());
        self.draw(&session, config).map(|()| ExitCode::SUCCESS)
    }

    fn draw(&self, session: &Session<'_>, config: &Path) -> Result<(), Stop> {
        let Some(path) = &self.plot else { return Ok(()) };
        let title = format!("{}, decided by {}", file_name(&self.requests), file_name(config));
        let svg = match (session.shed(), session.tally.plot()) {
            (Some(shed), _) => shed_plot::svg(&title, shed),
            (None, Some(plot)) => plot.svg(&title),
            (None, None) => return Ok(()),
        };
        std::fs::write(path, svg).map_err(|error| unwritable(path, &error))
    }

    /// Decides every line, until the reader of the output has gone.
    fn answer<'s, 'g: 's>(
        &self,
        lines: &mut Lines<impl Read>,
        session: &mut Session<'g>,
        output: &mut Output<'s, 'g>,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        loop {
            let sent = match lines.next() {
                NextLine::Line(_, line) if line.trim_ascii().is_empty() => Ok(()),
                NextLine::Line(number, line) | NextLine::TooLong(number, line) => {
                    let answered = session.answer(number, line).map_err(|bad| {
                        Stop::Failed(format!("{}:{number}: {bad}", self.requests.display()))
                    });
                    if answered.is_err() {
                        // Earlier rows get their results, including those that still wait.
                        session.finish();
                    }
                    let sent = write(session, output);
                    answered?;
                    sent
                }
                NextLine::Empty => {
                    let sent = output.flush();
                    progress.show(session.tally.rows, None);
                    lines.fill().map_err(|error| unreadable(&self.requests, &error))?;
                    sent
                }
                NextLine::End => {
                    session.finish();
                    let _ = write(session, output);
                    return Ok(());
                }
            };
            // `Output::finish` returns the reason.
            if let Err(WriterClosed) = sent {
                return Ok(());
            }
        }
    }

    fn open(&self) -> Result<Box<dyn Read>, Stop> {
        if self.requests.as_os_str() == "-" {
            return Ok(Box::new(io::stdin().lock()));
        }
        let file =
            File::open(&self.requests).map_err(|error| unreadable(&self.requests, &error))?;
        Ok(Box::new(file))
    }
}

/// Writes the results that are known.
fn write<'s, 'g: 's>(
    session: &mut Session<'g>,
    output: &mut Output<'s, 'g>,
) -> Result<(), WriterClosed> {
    while let Some(answer) = session.next_answer() {
        output.recycled().into_iter().for_each(|used| session.recycle(used));
        output.push(answer)?;
    }
    Ok(())
}
