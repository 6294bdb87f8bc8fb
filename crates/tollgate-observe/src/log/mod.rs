//! Log to standard error: text on a terminal, otherwise a JSON object for each line.
//!
//! A line reports a change of state, such as a reload or a lost store. Events of single requests
//! belong in metrics and traces. Types that hold a secret do not print it.
//!
//! Lines pass through a queue, so a full pipe blocks only the thread that writes them. Lines that
//! do not fit are dropped and counted.

mod queue;
#[cfg(test)]
mod tests;

pub use queue::LogQueue;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, Write};
use std::panic::{self, PanicHookInfo};
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;
use tollgate_net::lock;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text when standard error is a terminal, else JSON.
    #[default]
    Auto,
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The minimum level of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLevel(Level);

/// The text is not a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a level; write `error`, `warn`, `info`, `debug` or `trace`")]
pub struct InvalidLogLevel;

/// Time that the end of the process waits for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// Time that [`write_line`] waits for its line to be written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// The log queue of this process, once [`start`] was called.
static PROCESS: OnceLock<LogQueue> = OnceLock::new();

/// Flushes the log when dropped, for at most a second.
#[derive(Debug)]
#[must_use = "dropping it waits for the last lines"]
pub struct LogGuard(());

/// Starts the process's log on standard error, panics included. A second call changes nothing.
///
/// # Errors
///
/// When the system has no thread left.
pub fn start(format: LogFormat, severity: LogLevel) -> io::Result<LogGuard> {
    let format = match format {
        LogFormat::Auto if io::stderr().is_terminal() => LogFormat::Text,
        LogFormat::Auto => LogFormat::Json,
        chosen => chosen,
    };
    let queue = LogQueue::default();
    let log = subscriber(format, severity, {
        let queue = queue.clone();
        move || queue.clone()
    });
    if PROCESS.set(queue.clone()).is_ok() {
        let report = move |lost| loss_report(format, severity, lost);
        thread::Builder::new()
            .name("log".into())
            .spawn(move || queue.write_to(io::stderr(), report))?;
        // Fails if a subscriber is already set; that one stays.
        let _ = tracing::subscriber::set_global_default(log);
        panic::set_hook(Box::new(log_panic));
    }
    Ok(LogGuard(()))
}

/// Prints a text to standard error, after the lines already logged.
pub fn print(text: &str) {
    match PROCESS.get() {
        Some(queue) => {
            queue.push(text.as_bytes());
        }
        // A closed standard error does not stop the process.
        None => drop(io::stderr().lock().write_all(text.as_bytes())),
    }
}

/// Queues a line for standard error. Returns whether the queue had room.
pub fn push_line(line: &[u8]) -> bool {
    match PROCESS.get() {
        Some(queue) => queue.push(line),
        None => io::stderr().lock().write_all(line).is_ok(),
    }
}

/// Writes a line to standard error, and fails if that takes longer than a second.
pub fn write_line(line: &[u8]) -> io::Result<()> {
    match PROCESS.get() {
        Some(queue) => queue.write_within(line, WRITE_TIMEOUT),
        None => io::stderr().lock().write_all(line),
    }
}

/// Lines dropped because standard error was not read.
pub fn dropped_lines() -> u64 {
    PROCESS.get().map_or(0, LogQueue::dropped)
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        if let Some(queue) = PROCESS.get() {
            queue.flush(FLUSH_TIMEOUT);
        }
    }
}

/// A line that reports lost lines; logged at every level.
fn loss_report(format: LogFormat, severity: LogLevel, lost: u64) -> Vec<u8> {
    let report =
        || tracing::error!(lines = lost, "log lines were dropped: standard error was not read");
    capture(format, severity, report).into_bytes()
}

/// Runs `events` and returns the lines that they log, without writing them.
pub fn capture(format: LogFormat, severity: LogLevel, events: impl FnOnce()) -> String {
    let buffer = LineBuffer::default();
    let writer = buffer.clone();
    let log = subscriber(format, severity, move || writer.clone());
    tracing::subscriber::with_default(log, events);
    String::from_utf8_lossy(&lock(&buffer.0)).into_owned()
}

/// Collects lines. Clones share them.
#[derive(Clone, Default)]
struct LineBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LineBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Logs a panic. The hook of the standard library would block on a full pipe.
fn log_panic(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let message = payload.downcast_ref::<&str>().copied();
    let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = message.unwrap_or("without a message");
    let thread = thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let at = info.location().map(ToString::to_string).unwrap_or_default();
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        tracing::error!(thread, at, %backtrace, "panicked: {message}");
    } else {
        tracing::error!(thread, at, "panicked: {message}");
    }
}

/// Creates a subscriber that logs to `writer`.
fn subscriber<W>(
    format: LogFormat,
    severity: LogLevel,
    writer: W,
) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let log = tracing_subscriber::fmt().with_max_level(severity.0).with_writer(writer);
    let filter = targets(severity);
    match format {
        LogFormat::Json => {
            Box::new(log.json().flatten_event(true).with_target(false).finish().with(filter))
        }
        LogFormat::Text | LogFormat::Auto => {
            Box::new(log.with_ansi(false).with_target(false).finish().with(filter))
        }
    }
}

/// The levels by target. Libraries log only errors below `debug`: clients could fill the log
/// through them.
fn targets(severity: LogLevel) -> Targets {
    let theirs = match severity.0 {
        Level::DEBUG | Level::TRACE => severity.0,
        _ => Level::ERROR,
    };
    Targets::new().with_target("tollgate", severity.0).with_default(theirs)
}

impl Default for LogLevel {
    fn default() -> Self {
        Self(Level::INFO)
    }
}

impl FromStr for LogLevel {
    type Err = InvalidLogLevel;

    fn from_str(text: &str) -> Result<Self, InvalidLogLevel> {
        let known = ["error", "warn", "info", "debug", "trace"].contains(&text);
        let level = text.parse().ok().filter(|_| known);
        level.map(Self).ok_or(InvalidLogLevel)
    }
}
