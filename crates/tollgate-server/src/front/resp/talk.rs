//! A connection, from its first byte to its last.

use super::session::Session;
use super::table::{Enrolled, Table};
use crate::Node;
use crate::front::guard::Guard;
use crate::net::{Limits, Protocol, Wire};
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
const HELD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What a part may always have.
const HELD_BYTES_FREE: usize = 1024;

/// Tables that a worker keeps for those who come next.
const TABLES_MAX: usize = 16;

/// Speaks with Redis clients; one for each worker.
pub struct Resp {
    shared: Arc<Shared>,
    /// Taken while bytes are read, and answered where that does not have to wait.
    input: Cell<Option<Box<[u8]>>>,
    /// As many as there were turns at once, up to a point.
    #[expect(
        clippy::vec_box,
        reason = "a table is large, and goes into the future of its turn and back"
    )]
    tables: RefCell<Vec<Box<Table>>>,
    /// Bytes of commands that are not answered yet, or whose rest has not come.
    held: Cell<usize>,
}

/// What all workers share.
#[derive(Debug)]
pub struct Shared {
    pub(super) node: Arc<Node>,
    pub(super) enrolled: Enrolled,
    pub(super) guard: Guard,
    connections: AtomicI64,
}

impl Shared {
    /// For the clients of this node.
    pub fn new(node: Arc<Node>) -> Arc<Self> {
        let (enrolled, connections) = (Enrolled::default(), AtomicI64::new(0));
        Arc::new(Self { node, enrolled, guard: Guard::new(), connections })
    }
}

impl Resp {
    /// The front end's part on one worker.
    pub fn new(shared: Arc<Shared>) -> Self {
        let (input, tables, held) = (Cell::new(None), RefCell::default(), Cell::new(0));
        Self { shared, input, tables, held }
    }

    /// The limits of its connections, where those of the others are these.
    pub fn limits(limits: &Limits) -> Limits {
        Limits { idle: IDLE, ..limits.clone() }
    }

    /// Waits for bytes, and holds no memory for them meanwhile.
    async fn read(&self, wire: &mut Wire) -> (Box<[u8]>, usize) {
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

    /// Answers what has been read, and keeps the rest. `None` when nothing more can be said on the connection, `Some(false)` when there is no room for the rest.
    async fn take_turn(
        &self,
        wire: &mut Wire,
        mut input: Box<[u8]>,
        len: usize,
        held: &mut Held<'_>,
        session: &mut Session,
    ) -> Option<bool> {
        let mut table = self.tables.borrow_mut().pop().unwrap_or_default();
        // Memory answers at once, from the bytes as they were read. What has to wait for a store, or for more bytes, waits with its own.
        let at_once = held.bytes.is_empty() && !self.shared.node.gate.store().is_shared();
        let kept = match at_once {
            true => {
                let answered = self.answer(wire, &mut table, &mut input[..len], session).await;
                let kept = answered.map(|(used, least)| held.keep(&input[used..len], least));
                self.input.set(Some(input));
                kept
            }
            false => {
                held.append(&input[..len]);
                self.input.set(Some(input));
                match held.bytes.len() < held.least {
                    true => Some(held.fits()),
                    false => {
                        let answered = self.answer(wire, &mut table, &mut held.bytes, session);
                        answered.await.map(|(used, least)| held.forget(used, least))
                    }
                }
            }
        };
        let mut tables = self.tables.borrow_mut();
        if tables.len() < TABLES_MAX {
            tables.push(table);
        }
        kept
    }

    /// Answers what has come. `None` when nothing more can be said on the connection, else how much was answered and how much is waited for.
    async fn answer(
        &self,
        wire: &mut Wire,
        table: &mut Table,
        bytes: &mut [u8],
        session: &mut Session,
    ) -> Option<(usize, usize)> {
        let mut used = 0;
        loop {
            let busy = wire.begin();
            let turn = self.shared.turn(table, &mut bytes[used..], session).await;
            drop(busy);
            used += turn.used;
            let sent = table.output.is_empty() || wire.write(&table.output).await;
            table.output.clear();
            if !sent {
                return None;
            }
            if !turn.more {
                return Some((used, turn.least));
            }
        }
    }
}

impl Protocol for Resp {
    async fn serve(&self, mut wire: Wire, peer: SocketAddr) {
        let shared = &*self.shared;
        let id = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let mut session = Session::new(id, peer, !shared.node.resp.is_guarded());
        let mut held = Held { bytes: Vec::new(), least: 0, all: &self.held };
        loop {
            let (input, len) = self.read(&mut wire).await;
            if len == 0 {
                self.input.set(Some(input));
                break;
            }
            let kept = self.take_turn(&mut wire, input, len, &mut held, &mut session).await;
            match kept {
                None => return,
                Some(true) => {}
                Some(false) => {
                    wire.write(b"-ERR too many commands wait for their rest\r\n").await;
                    break;
                }
            }
            match held.bytes.is_empty() {
                false if !session.is_over => wire.expect_more(),
                // Whoever is asked to end does so between two commands.
                true if !session.is_over && !wire.is_ending() => {}
                _ => break,
            }
        }
        wire.end().await;
    }
}

/// A command whose rest has not come.
struct Held<'a> {
    bytes: Vec<u8>,
    /// How many bytes it has at least.
    least: usize,
    /// Of all connections of the worker.
    all: &'a Cell<usize>,
}

impl Held<'_> {
    fn append(&mut self, bytes: &[u8]) {
        self.all.set(self.all.get() + bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Keeps the rest of what was read; `false` when there is no room for it.
    fn keep(&mut self, rest: &[u8], least: usize) -> bool {
        if !rest.is_empty() {
            self.append(rest);
        }
        self.least = least;
        self.fits()
    }

    /// Forgets what has been answered.
    fn forget(&mut self, used: usize, least: usize) -> bool {
        self.all.set(self.all.get() - used);
        match used == self.bytes.len() {
            // The memory goes with it: most commands come whole.
            true => self.bytes = Vec::new(),
            false => drop(self.bytes.drain(..used)),
        }
        self.least = least;
        self.fits()
    }

    fn fits(&self) -> bool {
        self.bytes.len() <= HELD_BYTES_FREE || self.all.get() <= HELD_BYTES_MAX
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.all.set(self.all.get() - self.bytes.len());
    }
}
