//! One connection: reads, buffers partial commands, answers.

use super::batch::{Batch, EnrolledParams};
use super::decode::Caps;
use super::encode::RespVersion;
use crate::Node;
use crate::front::login_throttle::LoginThrottle;
use crate::net::{Limits, Protocol, ProtocolConnection};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tollgate::Store;

/// What is read at once: some two hundred commands.
const INPUT_BYTES: usize = 16 * 1024;
/// Clients keep connections in pools and expect a server to leave them there for a while.
const IDLE: Duration = Duration::from_secs(300);
/// Parts of commands that one worker keeps for all of its connections.
const PENDING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What a part may always have.
const PENDING_BYTES_FREE: usize = 1024;

/// Tables that a worker keeps for those who come next.
const BATCHES_MAX: usize = 16;

/// Speaks with Redis clients; one for each worker.
pub struct Resp {
    shared: Arc<RespState>,
    /// Taken while bytes are read, and answered where that does not have to wait.
    input: Cell<Option<Box<[u8]>>>,
    /// As many as there were turns at once, up to a point.
    #[expect(
        clippy::vec_box,
        reason = "a table is large, and goes into the future of its turn and back"
    )]
    batches: RefCell<Vec<Box<Batch>>>,
    /// Bytes of commands that are not answered yet, or whose rest has not come.
    pending_bytes: Cell<usize>,
}

/// What all workers share.
#[derive(Debug)]
pub struct RespState {
    pub(super) node: Arc<Node>,
    pub(super) enrolled: EnrolledParams,
    pub(super) guard: LoginThrottle,
    connections: AtomicI64,
}

impl RespState {
    /// For the clients of this node.
    pub fn new(node: Arc<Node>) -> Arc<Self> {
        let (enrolled, connections) = (EnrolledParams::default(), AtomicI64::new(0));
        Arc::new(Self { node, enrolled, guard: LoginThrottle::new(), connections })
    }
}

impl Resp {
    /// The front end's part on one worker.
    pub fn new(shared: Arc<RespState>) -> Self {
        let (input, tables, held) = (Cell::new(None), RefCell::default(), Cell::new(0));
        Self { shared, input, batches: tables, pending_bytes: held }
    }

    /// The limits of its connections, where those of the others are these.
    pub fn limits(limits: &Limits) -> Limits {
        Limits { idle: IDLE, ..limits.clone() }
    }

    /// Waits for bytes, and holds no memory for them meanwhile.
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

    /// Answers what has been read, and keeps the rest. `None` when nothing more can be said on the
    /// connection, `Some(false)` when there is no room for the rest.
    async fn process_input(
        &self,
        wire: &mut ProtocolConnection,
        mut input: Box<[u8]>,
        len: usize,
        pending: &mut PendingInput<'_>,
        session: &mut Session,
    ) -> Option<bool> {
        let mut batch = self.batches.borrow_mut().pop().unwrap_or_default();
        // Memory answers at once, from the bytes as they were read. What has to wait for a store,
        // or for more bytes, waits with its own.
        let at_once = pending.bytes.is_empty() && !self.shared.node.gate.store().is_shared();
        let kept = match at_once {
            true => {
                let answered = self.answer(wire, &mut batch, &mut input[..len], session).await;
                let kept =
                    answered.map(|(used, least)| pending.store_rest(&input[used..len], least));
                self.input.set(Some(input));
                kept
            }
            false => {
                pending.append(&input[..len]);
                self.input.set(Some(input));
                match pending.bytes.len() < pending.needed {
                    true => Some(pending.is_within_cap()),
                    false => {
                        let answered = self.answer(wire, &mut batch, &mut pending.bytes, session);
                        answered.await.map(|(used, least)| pending.consume(used, least))
                    }
                }
            }
        };
        let mut batches = self.batches.borrow_mut();
        if batches.len() < BATCHES_MAX {
            batches.push(batch);
        }
        kept
    }

    /// Answers what has come. `None` when nothing more can be said on the connection, else how much
    /// was answered and how much is waited for.
    async fn answer(
        &self,
        wire: &mut ProtocolConnection,
        batch: &mut Batch,
        bytes: &mut [u8],
        session: &mut Session,
    ) -> Option<(usize, usize)> {
        let mut used = 0;
        loop {
            let busy = wire.begin_request();
            let progress = self.shared.run_batch(batch, &mut bytes[used..], session).await;
            drop(busy);
            used += progress.consumed;
            let sent = batch.output.is_empty() || wire.write(&batch.output).await;
            batch.output.clear();
            if !sent {
                return None;
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
            let kept = self.process_input(&mut wire, input, len, &mut pending, &mut session).await;
            match kept {
                None => return,
                Some(true) => {}
                Some(false) => {
                    wire.write(b"-ERR too many commands wait for their rest\r\n").await;
                    break;
                }
            }
            match pending.bytes.is_empty() {
                false if !session.is_closing => wire.await_rest(),
                // Whoever is asked to end does so between two commands.
                true if !session.is_closing && !wire.is_ending() => {}
                _ => break,
            }
        }
        wire.shutdown().await;
    }
}

/// A command whose rest has not come.
struct PendingInput<'a> {
    bytes: Vec<u8>,
    /// How many bytes it has at least.
    needed: usize,
    /// Of all connections of the worker.
    worker_bytes: &'a Cell<usize>,
}

impl PendingInput<'_> {
    fn append(&mut self, bytes: &[u8]) {
        self.worker_bytes.set(self.worker_bytes.get() + bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Keeps the rest of what was read; `false` when there is no room for it.
    fn store_rest(&mut self, rest: &[u8], least: usize) -> bool {
        if !rest.is_empty() {
            self.append(rest);
        }
        self.needed = least;
        self.is_within_cap()
    }

    /// Forgets what has been answered.
    fn consume(&mut self, used: usize, least: usize) -> bool {
        self.worker_bytes.set(self.worker_bytes.get() - used);
        match used == self.bytes.len() {
            // The memory goes with it: most commands come whole.
            true => self.bytes = Vec::new(),
            false => drop(self.bytes.drain(..used)),
        }
        self.needed = least;
        self.is_within_cap()
    }

    fn is_within_cap(&self) -> bool {
        self.bytes.len() <= PENDING_BYTES_FREE || self.worker_bytes.get() <= PENDING_BYTES_MAX
    }
}

impl Drop for PendingInput<'_> {
    fn drop(&mut self) {
        self.worker_bytes.set(self.worker_bytes.get() - self.bytes.len());
    }
}

/// Wrong passwords on one connection, after which it is closed.
const WRONG_MAX: u8 = 8;

/// One connection's side of the conversation.
#[derive(Debug)]
pub(crate) struct Session {
    /// Counts the connections of this process.
    pub(super) id: i64,
    pub(super) peer: SocketAddr,
    pub(super) version: RespVersion,
    /// What it calls itself; may be empty.
    pub(super) name: Box<[u8]>,
    /// Whether it has said the password, or did not have to when it came.
    is_authenticated: bool,
    wrong_passwords: u8,
    /// Whether the connection is to end after what has been answered.
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

    /// The password was right.
    pub(super) fn set_authenticated(&mut self) {
        self.is_authenticated = true;
        self.wrong_passwords = 0;
    }

    /// The password was wrong. Whoever keeps guessing has to connect again.
    pub(super) fn wrong_password(&mut self) {
        self.wrong_passwords = self.wrong_passwords.saturating_add(1);
        self.is_closing |= self.wrong_passwords >= WRONG_MAX;
    }

    /// As it began.
    pub(super) fn reset(&mut self, is_authenticated: bool) {
        self.version = RespVersion::default();
        self.name = Box::default();
        self.is_authenticated = is_authenticated;
    }
}
