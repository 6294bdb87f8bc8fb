//! One connection: reads, buffers partial commands, answers.

use super::batch::{Batch, EnrolledParams};
use super::decode::Caps;
use super::encode::RespVersion;
use crate::Node;
use crate::front::address_throttle::AddressThrottle;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tollgate::store::Store;
use tollgate_net::{Limits, Protocol, ProtocolConnection};

/// Size of one read: some two hundred commands.
const INPUT_BYTES: usize = 16 * 1024;
/// The idle timeout; long, because clients keep idle connections in pools.
const IDLE: Duration = Duration::from_secs(300);
/// Limit of bytes of partial commands on one worker.
const PENDING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The size up to which a partial command is always kept.
const PENDING_BYTES_FREE: usize = 1024;

/// Limit of batches that a worker keeps for reuse.
const BATCHES_MAX: usize = 16;

/// Serves Redis clients on one worker.
pub struct Resp {
    shared: Arc<RespState>,
    /// The read buffer; taken while bytes are read, and while commands run that do not wait.
    input: Cell<Option<Box<[u8]>>>,
    #[expect(clippy::vec_box, reason = "a batch is large, and moves into a future and back")]
    batches: RefCell<Vec<Box<Batch>>>,
    /// Bytes of commands that wait for a decision or for more bytes.
    pending_bytes: Cell<usize>,
}

/// State shared by all workers.
#[derive(Debug)]
pub struct RespState {
    pub(super) node: Arc<Node>,
    pub(super) enrolled: EnrolledParams,
    pub(super) guard: AddressThrottle,
    connections: AtomicI64,
}

impl RespState {
    /// Creates the state for the clients of this node.
    pub fn new(node: Arc<Node>) -> Arc<Self> {
        let (enrolled, connections) = (EnrolledParams::default(), AtomicI64::new(0));
        Arc::new(Self { node, enrolled, guard: AddressThrottle::new(), connections })
    }
}

impl Resp {
    /// Creates the front end of one worker.
    pub fn new(shared: Arc<RespState>) -> Self {
        let (input, batches, pending_bytes) = Default::default();
        Self { shared, input, batches, pending_bytes }
    }

    /// The limits of its connections, derived from those of other front ends.
    pub fn limits(limits: &Limits) -> Limits {
        Limits { idle: IDLE, ..limits.clone() }
    }

    /// Reads bytes, without a buffer while waiting.
    async fn read(&self, wire: &mut ProtocolConnection) -> (Box<[u8]>, usize) {
        poll_fn(|context| {
            let mut input = self.input.take().unwrap_or_else(|| vec![0; INPUT_BYTES].into());
            match wire.poll_read(context, &mut input) {
                Poll::Ready(len) => Poll::Ready((input, len)),
                Poll::Pending => {
                    self.input.set(Some(input));
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Runs the commands in the input, and keeps the rest.
    async fn process_input(
        &self,
        wire: &mut ProtocolConnection,
        mut input: Box<[u8]>,
        len: usize,
        pending: &mut PendingInput<'_>,
        session: &mut Session,
    ) -> InputResult {
        let mut batch = self.batches.borrow_mut().pop().unwrap_or_default();
        // The memory store decides immediately, from the read buffer. A command that waits for a
        // store, or for more bytes, keeps its own bytes.
        let at_once = pending.bytes.is_empty() && !self.shared.node.gate.store().is_shared();
        let result = if at_once {
            let answered = self.answer(wire, &mut batch, &mut input[..len], session).await;
            let result =
                answered.map(|(used, needed)| pending.store_rest(&input[used..len], needed));
            self.input.set(Some(input));
            result.unwrap_or(InputResult::Closed)
        } else {
            pending.append(&input[..len]);
            self.input.set(Some(input));
            if pending.bytes.len() < pending.needed {
                pending.result()
            } else {
                let answered = self.answer(wire, &mut batch, &mut pending.bytes, session).await;
                let result = answered.map(|(used, needed)| pending.consume(used, needed));
                result.unwrap_or(InputResult::Closed)
            }
        };
        let mut batches = self.batches.borrow_mut();
        if batches.len() < BATCHES_MAX {
            batches.push(batch);
        }
        result
    }

    /// Runs the commands in `bytes`. Returns the bytes used, and the bytes that the next command
    /// needs; `None` if the connection is closed.
    async fn answer(
        &self,
        wire: &mut ProtocolConnection,
        batch: &mut Batch,
        bytes: &mut [u8],
        session: &mut Session,
    ) -> Option<(usize, usize)> {
        let mut used = 0;
        loop {
            let since = wire.waiting_since();
            let busy = wire.begin_request();
            let progress = self.shared.run_batch(batch, &mut bytes[used..], session).await;
            drop(busy);
            used += progress.consumed;
            let sent = batch.output.is_empty() || wire.write(&batch.output).await;
            batch.output.clear();
            if !sent {
                return None;
            }
            if progress.consumed == 0 {
                // More bytes of one command do not extend its deadline.
                wire.resume_wait(since);
            }
            if !progress.has_more {
                return Some((used, progress.needed));
            }
        }
    }
}

impl Protocol for Resp {
    async fn serve(&self, mut wire: ProtocolConnection, peer: SocketAddr) {
        let shared = &*self.shared;
        let id = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let mut session = Session::new(id, peer, !shared.node.resp_auth.requires_password());
        let mut pending =
            PendingInput { bytes: Vec::new(), needed: 0, worker_bytes: &self.pending_bytes };
        loop {
            let (input, len) = self.read(&mut wire).await;
            if len == 0 {
                self.input.set(Some(input));
                break;
            }
            match self.process_input(&mut wire, input, len, &mut pending, &mut session).await {
                InputResult::Closed => return,
                InputResult::Continue => {}
                InputResult::TooMuchPending => {
                    wire.write(b"-ERR too many commands wait for their rest\r\n").await;
                    break;
                }
            }
            // A drain closes the connection between two commands.
            if session.is_closing || (pending.bytes.is_empty() && wire.is_ending()) {
                break;
            }
            if !pending.bytes.is_empty() {
                wire.await_rest();
            }
        }
        wire.shutdown().await;
    }
}

/// The state of a connection after some input.
enum InputResult {
    Continue,
    /// Nothing more can be sent.
    Closed,
    /// The worker has no room for partial commands.
    TooMuchPending,
}

/// A partial command.
struct PendingInput<'a> {
    bytes: Vec<u8>,
    /// The least number of bytes of the command.
    needed: usize,
    /// Bytes of all partial commands of the worker.
    worker_bytes: &'a Cell<usize>,
}

impl PendingInput<'_> {
    fn append(&mut self, bytes: &[u8]) {
        self.worker_bytes.set(self.worker_bytes.get() + bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Keeps the rest of the input.
    fn store_rest(&mut self, rest: &[u8], needed: usize) -> InputResult {
        if !rest.is_empty() {
            self.append(rest);
        }
        self.needed = needed;
        self.result()
    }

    /// Removes commands with replies.
    fn consume(&mut self, used: usize, needed: usize) -> InputResult {
        self.worker_bytes.set(self.worker_bytes.get() - used);
        self.bytes.drain(..used);
        if self.bytes.is_empty() {
            // Most commands arrive complete, so the buffer is not kept.
            self.bytes = Vec::new();
        }
        self.needed = needed;
        self.result()
    }

    fn result(&self) -> InputResult {
        let worker_bytes = self.worker_bytes.get();
        if self.bytes.len() <= PENDING_BYTES_FREE || worker_bytes <= PENDING_BYTES_MAX {
            InputResult::Continue
        } else {
            InputResult::TooMuchPending
        }
    }
}

impl Drop for PendingInput<'_> {
    fn drop(&mut self) {
        self.worker_bytes.set(self.worker_bytes.get() - self.bytes.len());
    }
}

/// The connection is closed after this many wrong passwords.
const WRONG_MAX: u8 = 8;

/// State of one connection.
#[derive(Debug)]
pub(crate) struct Session {
    /// The number of the connection in this process.
    pub(super) id: i64,
    pub(super) peer: SocketAddr,
    pub(super) version: RespVersion,
    /// The name of the connection; may be empty.
    pub(super) name: Box<[u8]>,
    /// Whether the client sent the password, or none was required when it connected.
    is_authenticated: bool,
    wrong_passwords: u8,
    /// Whether the connection closes after the replies so far.
    pub(super) is_closing: bool,
}

impl Session {
    pub(super) fn new(id: i64, peer: SocketAddr, is_authenticated: bool) -> Self {
        let (version, name) = (RespVersion::default(), Box::default());
        Self { id, peer, version, name, is_authenticated, wrong_passwords: 0, is_closing: false }
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.is_authenticated
    }

    pub(super) fn caps(&self) -> Caps {
        if self.is_authenticated { Caps::AUTHENTICATED } else { Caps::UNAUTHENTICATED }
    }

    pub(super) fn set_authenticated(&mut self) {
        self.is_authenticated = true;
        self.wrong_passwords = 0;
    }

    /// Counts a wrong password. A client that keeps guessing must reconnect.
    pub(super) fn wrong_password(&mut self) {
        self.wrong_passwords = self.wrong_passwords.saturating_add(1);
        self.is_closing |= self.wrong_passwords >= WRONG_MAX;
    }

    /// Resets the connection to its start.
    pub(super) fn reset(&mut self, is_authenticated: bool) {
        self.version = RespVersion::default();
        self.name = Box::default();
        self.is_authenticated = is_authenticated;
    }
}

#[cfg(test)]
mod tests;
