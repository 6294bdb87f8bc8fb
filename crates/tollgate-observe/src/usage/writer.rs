//! Usage writer: turns the rows of the shards into lines of the file.

use super::chain::ChainFile;
use super::format::{GapLine, UsageLine, UsageRow};
use super::shard::{UsageRows, UsageUnits, read_row_key};
use super::{StateLimit, UsageTrail};
use crate::ObservedNode;
use crate::time::rfc3339;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tollgate_net::lock;
use tollgate_policy::settings;

/// Size of a block of lines: some milliseconds of work.
const BLOCK_BYTES: usize = 256 << 10;

/// Writes the intervals of a trail.
#[derive(Debug)]
pub(super) struct UsageWriter {
    file: ChainFile,
    every_us: u64,
    fsync: bool,
    bytes_max: u64,
    age_max_us: u64,
    /// Past intervals that could not be written yet.
    waiting: BTreeMap<u64, Vec<UsageRows>>,
    /// The time range of dropped intervals, reported once the file is writable again.
    gap: Option<GapLine>,
    is_failing: bool,
}

/// The usage file could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("the usage file {} cannot be written: {source}; {}", .path.display(), hint(.source))]
pub struct UsageError {
    pub(super) path: PathBuf,
    pub(super) source: io::Error,
}

impl UsageWriter {
    /// Opens the file. After a crash of the last process, writes a gap line and logs a warning.
    pub(super) fn open(
        settings: &settings::Usage,
        folder: &Path,
        now_us: u64,
    ) -> Result<Self, UsageError> {
        let path = folder.join(&*settings.file);
        let failed = |source| UsageError { path: path.clone(), source };
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let every_us = micros(settings.every).max(1);
        let (file, earlier) =
            ChainFile::begin(&path, every_us / 1_000_000, now_us).map_err(failed)?;
        let mut gap = None;
        if let Some(earlier) = earlier {
            if let Some(last) = earlier.last_time().filter(|last| **last > *rfc3339(now_us)) {
                tracing::warn!(last, "the clock is behind the last time of the usage trail");
            }
            if !earlier.is_stopped {
                let lost = earlier.crash_gap(now_us);
                let (from, to) = (lost.from.as_deref().unwrap_or("the start"), &*lost.to);
                tracing::warn!(
                    from,
                    to,
                    "the usage trail has a gap: the last process did not end in order"
                );
                gap = Some(lost);
            }
        }
        let mut writer = Self {
            file,
            every_us,
            fsync: settings.fsync,
            bytes_max: settings.bytes_max,
            age_max_us: micros(settings.age_max),
            waiting: BTreeMap::new(),
            gap,
            is_failing: false,
        };
        writer.write_gap().map_err(failed)?;
        Ok(writer)
    }

    /// Writes the intervals that ended before `now_us`. Calls `rest` after each block.
    pub(super) fn write_over(
        &mut self,
        node: &dyn ObservedNode,
        trail: &UsageTrail,
        now_us: u64,
        rest: &mut dyn FnMut(),
    ) {
        lock(&trail.reservations).expire(now_us);
        self.collect(trail, now_us / self.every_us);
        if !self.follow_moved(trail, now_us) {
            return;
        }
        let sources = (node, trail);
        self.write_waiting(sources, |interval, every_us| (interval + 1) * every_us, rest);
        let age_us = now_us.saturating_sub(self.file.started_us);
        let is_due = self.file.bytes >= self.bytes_max || age_us >= self.age_max_us;
        if is_due && self.waiting.is_empty() {
            let rotated = self.file.rotate(now_us);
            self.report(rotated);
        }
    }

    /// Writes all intervals, the current one included, and the end of the process.
    pub(super) fn stop(&mut self, node: &dyn ObservedNode, trail: &UsageTrail, now_us: u64) {
        self.collect(trail, u64::MAX);
        if !self.follow_moved(trail, now_us) {
            return;
        }
        let end_us = |interval: u64, every_us: u64| ((interval + 1) * every_us).min(now_us);
        self.write_waiting((node, trail), end_us, &mut || {});
        let stopped = self.file.append(&[UsageLine::Stopped { stopped: rfc3339(now_us) }]);
        let stopped = stopped.and_then(|()| self.file.sync());
        self.report(stopped);
    }

    /// Starts the next file if an operator removed or renamed the current one. Returns whether
    /// there is a file to write to.
    fn follow_moved(&mut self, trail: &UsageTrail, now_us: u64) -> bool {
        let moved = match self.file.follow_moved(now_us) {
            Ok(None) => return true,
            Ok(Some(moved)) => moved,
            Err(error) => {
                self.report(Err(error));
                return false;
            }
        };
        let (file, rows) = (self.file.path.display(), moved.rows);
        if !moved.is_removed {
            tracing::warn!(%file, "the usage file was renamed; a new file continues the chain");
            return true;
        }
        tracing::warn!(%file, rows, "the usage file was removed with its rows; a new file begins");
        trail.lost_rows.fetch_add(rows, Relaxed);
        if rows > 0 {
            let from = Some(rfc3339(moved.started_us));
            let reason = "the file was removed while the process wrote to it".into();
            self.gap = Some(GapLine { from, to: rfc3339(now_us), reason });
        }
        let written = self.write_gap();
        self.report(written);
        true
    }

    /// Takes the rows of all earlier intervals from the shards.
    fn collect(&mut self, trail: &UsageTrail, interval: u64) {
        for shard in &trail.shards {
            let over = lock(shard).take_before(interval);
            for (interval, rows) in over {
                self.waiting.entry(interval).or_default().push(rows);
            }
        }
        // While the file fails, one interval waits; keeping more would grow memory without bound.
        while self.is_failing && self.waiting.len() > 1 {
            if let Some((interval, rows)) = self.waiting.pop_first() {
                self.drop_interval(trail, interval, &rows);
            }
        }
    }

    fn drop_interval(&mut self, trail: &UsageTrail, interval: u64, rows: &[UsageRows]) {
        let rows: usize = rows.iter().map(UsageRows::len).sum();
        trail.lost_rows.fetch_add(rows as u64, Relaxed);
        let to = rfc3339((interval + 1) * self.every_us);
        let reason = "the file could not be written";
        let first = || GapLine {
            from: Some(rfc3339(interval * self.every_us)),
            to: String::new(),
            reason: reason.into(),
        };
        self.gap.get_or_insert_with(first).to = to;
    }

    /// Writes the waiting intervals, oldest first, until a write fails.
    fn write_waiting(
        &mut self,
        (node, trail): (&dyn ObservedNode, &UsageTrail),
        end_us: impl Fn(u64, u64) -> u64,
        rest: &mut dyn FnMut(),
    ) {
        while let Some((interval, rows)) = self.waiting.pop_first() {
            let end = rfc3339(end_us(interval, self.every_us));
            let count = rows.iter().map(UsageRows::len).sum::<usize>() as u64;
            let written = self.write_gap().and_then(|()| {
                let before = self.file.mark();
                let names = RowNames::new(node, trail);
                let written = self
                    .write_interval(names, interval, &rows, rest)
                    .and_then(|rows| {
                        let sha256 = Some(self.file.sha256());
                        self.file.append(&[UsageLine::End { end, rows, sha256 }])
                    })
                    .and_then(|()| if self.fsync { self.file.sync() } else { Ok(()) });
                // The next attempt writes the interval from its start.
                written.inspect_err(|_| self.file.undo(before))
            });
            let is_written = written.is_ok();
            self.report(written);
            if !is_written {
                self.waiting.insert(interval, rows);
                return;
            }
            self.file.rows += count;
            trail.written_rows.fetch_add(count, Relaxed);
        }
    }

    fn write_gap(&mut self) -> io::Result<()> {
        if let Some(gap) = &self.gap {
            self.file.append(&[UsageLine::Gap { gap: gap.clone() }])?;
            self.gap = None;
        }
        Ok(())
    }

    /// Writes the rows of an interval, and returns their number.
    fn write_interval(
        &mut self,
        mut names: RowNames<'_>,
        interval: u64,
        rows: &[UsageRows],
        rest: &mut dyn FnMut(),
    ) -> io::Result<u64> {
        let time = rfc3339(interval * self.every_us);
        let mut block = Vec::with_capacity(BLOCK_BYTES + 4096);
        let mut count = 0;
        for (row_key, units) in rows.iter().flatten() {
            let Some(row) = names.row(&time, row_key, *units) else { continue };
            serde_json::to_writer(&mut block, &row)?;
            block.push(b'\n');
            count += 1;
            if block.len() >= BLOCK_BYTES {
                self.file.append_block(&block)?;
                block.clear();
                rest();
            }
        }
        self.file.append_block(&block)?;
        Ok(count)
    }

    /// Logs the first failure of the file, and the first success after it.
    fn report(&mut self, result: io::Result<()>) {
        match (result, self.is_failing) {
            (Err(error), false) => {
                self.is_failing = true;
                let file = self.file.path.display();
                tracing::error!(%file, %error, "the usage trail is not writable");
            }
            (Ok(()), true) => {
                self.is_failing = false;
                tracing::info!(file = %self.file.path.display(), "the usage trail is writable again");
            }
            _ => {}
        }
    }
}

/// Names of limits and keys, for rows.
struct RowNames<'a> {
    node: &'a dyn ObservedNode,
    trail: &'a UsageTrail,
    rules: tollgate::engine::RulesGuard,
    states: BTreeMap<u64, Option<StateLimit>>,
}

impl<'a> RowNames<'a> {
    fn new(node: &'a dyn ObservedNode, trail: &'a UsageTrail) -> Self {
        Self { node, trail, rules: node.rules(), states: BTreeMap::new() }
    }

    fn row(&mut self, time: &str, row_key: &[u8], units: UsageUnits) -> Option<UsageRow> {
        let (state_id, tier, key) = read_row_key(row_key)?;
        let Self { node, trail, rules, states } = self;
        let state = states.entry(state_id).or_insert_with(|| trail.state(state_id)).as_ref()?;
        let shown = |key| {
            let shown = node.keys().show(rules, &state.limit, state.key_index, key);
            shown.0.into_iter().map(|(name, value)| (name.into(), value)).collect()
        };
        Some(UsageRow {
            time: time.into(),
            limit: state.limit.name.to_string(),
            tier: (!tier.is_empty()).then(|| tier.to_owned()),
            key: key.map(shown),
            admitted: units.admitted,
            refused: units.refused,
            given_back: units.given_back,
        })
    }
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::WouldBlock => "another process writes to it; give each node its own",
        _ => "check the path and its rights, or change `usage.file`",
    }
}

#[cfg(test)]
impl UsageWriter {
    /// Makes every write fail.
    pub(super) fn break_file(&mut self) {
        self.file.replace_handle(std::fs::File::open(&self.file.path).expect("the writer made it"));
    }

    pub(super) fn mend_file(&mut self) {
        let file = crate::append::open_append(&self.file.path).expect("the writer made it");
        self.file.replace_handle(file);
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
