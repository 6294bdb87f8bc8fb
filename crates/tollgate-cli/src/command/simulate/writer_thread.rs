//! The thread that writes results while the next ones are decided: a third of the work.

use super::row_writer::{RowResult, RowWriter};
use crate::command::Stop;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// The size of a batch, by [`RowResult::weight`], and how many batches may wait for the writer.
const BATCH_WEIGHT: usize = 1_024;
const BATCHES: usize = 2;
/// The size of one write.
const WRITE_BYTES: usize = 256 * 1024;

type Batch<'g> = Vec<RowResult<'g>>;

/// Sends results to the thread.
pub(super) struct Output<'scope, 'g> {
    full: SyncSender<Batch<'g>>,
    spent: Receiver<Batch<'g>>,
    batch: Batch<'g>,
    weight: usize,
    /// Written results, kept for their buffers.
    recycled: Batch<'g>,
    thread: ScopedJoinHandle<'scope, Result<(), Stop>>,
}

/// The error for a thread that has ended; [`Output::finish`] returns the reason.
pub(super) struct WriterClosed;

impl<'scope, 'g: 'scope> Output<'scope, 'g> {
    /// Starts the thread that writes to standard output.
    pub(super) fn start(scope: &'scope Scope<'scope, '_>, writer: RowWriter) -> Self {
        let (full, from_full) = sync_channel(BATCHES);
        let (to_spent, spent) = channel();
        let thread = scope.spawn(move || write_all(writer, &from_full, &to_spent));
        Self { full, spent, batch: Vec::new(), weight: 0, recycled: Vec::new(), thread }
    }

    pub(super) fn push(&mut self, answer: RowResult<'g>) -> Result<(), WriterClosed> {
        self.weight += answer.weight();
        self.batch.push(answer);
        if self.weight >= BATCH_WEIGHT { self.flush() } else { Ok(()) }
    }

    /// Sends the batch now, because the next result may take a while.
    pub(super) fn flush(&mut self) -> Result<(), WriterClosed> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.weight = 0;
        let next = Vec::with_capacity(self.batch.len());
        self.full.send(std::mem::replace(&mut self.batch, next)).map_err(|_| WriterClosed)
    }

    /// Returns a written result, for its buffers.
    pub(super) fn recycled(&mut self) -> Option<RowResult<'g>> {
        if self.recycled.is_empty() {
            self.recycled = self.spent.try_recv().unwrap_or_default();
        }
        self.recycled.pop()
    }

    /// Waits until everything is written.
    pub(super) fn finish(mut self) -> Result<(), Stop> {
        // If the thread has ended, `join` returns the reason.
        let _ = self.flush();
        drop(self.full);
        match self.thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn write_all<'g>(
    mut writer: RowWriter,
    full: &Receiver<Batch<'g>>,
    spent: &Sender<Batch<'g>>,
) -> Result<(), Stop> {
    let mut out = Vec::with_capacity(2 * WRITE_BYTES);
    for batch in full {
        for answer in &batch {
            writer.answer(&mut out, answer);
            if out.len() >= WRITE_BYTES {
                write(&mut out)?;
            }
        }
        write(&mut out)?;
        // The receiver is dropped once all rows are decided.
        let _ = spent.send(batch);
    }
    Ok(())
}

fn write(out: &mut Vec<u8>) -> Result<(), Stop> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(out).and_then(|()| stdout.flush());
    out.clear();
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Stop::Unread,
        _ => Stop::Unusable(format!("cannot write results: {error}")),
    })
}
