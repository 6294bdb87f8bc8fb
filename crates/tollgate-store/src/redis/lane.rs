//! Connections, and the calls that go over them.

use super::batch::{Batch, Tables};
use super::key::Namer;
use super::replay::{push_rows, replay};
use super::reply::Decided;
use super::script::{self, Script};
use super::{Options, pack};
use crate::{Answer, Answers, Request, StoreError, StoreErrorKind};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

/// How many requests one call decides at most: more gain nothing, and would hold Redis up for longer.
const BATCH_MOST: usize = 64;

/// Requests on their way to a lane.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Notify,
    most: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: std::collections::VecDeque<Pending>,
    requests: usize,
    closed: bool,
}

/// What there is for a lane to do.
enum Popped {
    Batch(Pending),
    Nothing,
    Closed,
}

/// A batch that can still grow, with those who wait for it.
#[derive(Debug, Default)]
struct Pending {
    now_us: Option<u64>,
    batch: Batch,
    waiters: Vec<Waiter>,
}

/// Whoever asked for the next `requests` of the batch. It may have gone away meanwhile, which concerns nobody else.
#[derive(Debug)]
struct Waiter {
    requests: usize,
    reply: oneshot::Sender<Result<Vec<Rows>, StoreError>>,
}

type Rows = (bool, Vec<Answer>);

impl Queue {
    pub(super) fn new(most: usize) -> Self {
        Self { waiting: Mutex::default(), arrived: Notify::new(), most }
    }

    /// Has `requests` decided with whatever else waits.
    pub(super) async fn ask(
        &self,
        namer: &Namer,
        now_us: Option<u64>,
        requests: &[Request<'_>],
        answers: &mut Answers,
        options: &Options,
    ) -> Result<(), StoreError> {
        if requests.iter().all(|request| request.charges.is_empty()) {
            requests.iter().for_each(|_| answers.finish(true));
            return Ok(());
        }
        let reply = self.push(namer, now_us, requests)?;
        self.arrived.notify_one();
        let rows = match timeout(options.deadline, reply).await {
            Ok(Ok(rows)) => rows?,
            Ok(Err(_)) => return Err(StoreError::new(StoreErrorKind::Unreachable, "")),
            Err(_) => return Err(StoreError::new(StoreErrorKind::Timeout, "")),
        };
        rows.iter().for_each(|(admitted, rows)| push_rows(answers, *admitted, rows));
        Ok(())
    }

    fn push(
        &self,
        namer: &Namer,
        now_us: Option<u64>,
        requests: &[Request<'_>],
    ) -> Result<oneshot::Receiver<Result<Vec<Rows>, StoreError>>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let mut waiting = self.lock();
        if waiting.requests + requests.len() > self.most {
            return Err(StoreError::new(StoreErrorKind::Busy, "too many requests wait"));
        }
        waiting.requests += requests.len();
        let fits = |pending: &Pending| {
            pending.now_us == now_us && pending.batch.requests.len() < BATCH_MOST
        };
        if !waiting.batches.back().is_some_and(fits) {
            waiting.batches.push_back(Pending { now_us, ..Pending::default() });
        }
        if let Some(pending) = waiting.batches.back_mut() {
            requests.iter().for_each(|request| {
                pending.batch.push(namer, request);
            });
            pending.waiters.push(Waiter { requests: requests.len(), reply });
        }
        Ok(answer)
    }

    /// The next batch, once there is one; `None` when nobody can ask any more.
    async fn next(&self) -> Option<Pending> {
        loop {
            let arrived = self.arrived.notified();
            match self.pop() {
                Popped::Batch(pending) => return Some(pending),
                Popped::Closed => return None,
                Popped::Nothing => arrived.await,
            }
        }
    }

    fn pop(&self) -> Popped {
        let mut waiting = self.lock();
        match waiting.batches.pop_front() {
            Some(pending) => {
                waiting.requests -= pending.batch.requests.len();
                if !waiting.batches.is_empty() {
                    self.arrived.notify_one();
                }
                Popped::Batch(pending)
            }
            None if waiting.closed => Popped::Closed,
            None => Popped::Nothing,
        }
    }

    /// Ends the lanes, once they have decided what waits.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_waiters();
    }

    /// A panic elsewhere leaves it whole: a request is added in one piece or its caller is gone.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Decides batches over one connection, one after the other, for as long as anybody can ask.
pub(super) async fn run(client: Client, queue: Arc<Queue>, options: Options) {
    let mut link = Link::new(client, &options);
    while let Some(pending) = queue.next().await {
        let asked = link.call(
            &script::DECIDE,
            &pending.batch.tables,
            pending.batch.program(),
            pending.now_us,
        );
        let decided = asked.await.and_then(Decided::read);
        pending.answer(decided);
    }
}

impl Pending {
    fn answer(self, decided: Result<Decided, StoreError>) {
        let mut all = Vec::with_capacity(self.batch.requests.len());
        let replayed = decided.and_then(|decided| {
            replay(&self.batch, &decided, |_, admitted, rows| all.push((admitted, rows.to_vec())))
        });
        let mut all = all.into_iter();
        for waiter in self.waiters {
            let rows = match &replayed {
                Ok(()) => Ok(all.by_ref().take(waiter.requests).collect()),
                Err(error) => Err(StoreError::new(error.kind, error.detail.clone())),
            };
            // Whoever asked may be gone.
            let _ = waiter.reply.send(rows);
        }
    }
}

/// A connection that is made again when it is lost.
struct Link {
    client: Client,
    connection: Option<MultiplexedConnection>,
    deadline: Duration,
    spare_ms: u128,
}

impl Link {
    fn new(client: Client, options: &Options) -> Self {
        let (deadline, spare_ms) = (options.deadline, options.spare.as_millis());
        Self { client, connection: None, deadline, spare_ms }
    }

    async fn connection(&mut self) -> Result<&mut MultiplexedConnection, StoreError> {
        if self.connection.is_none() {
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(self.deadline))
                .set_response_timeout(Some(self.deadline));
            let connected = self.client.get_multiplexed_async_connection_with_config(&config);
            self.connection = Some(connected.await.map_err(|error| failure(&error))?);
        }
        self.connection.as_mut().ok_or_else(|| StoreError::new(StoreErrorKind::Unreachable, ""))
    }

    async fn call(
        &mut self,
        script: &Script,
        tables: &Tables,
        program: Vec<u8>,
        now_us: Option<u64>,
    ) -> Result<Value, StoreError> {
        let [numbers, penalties] = tables.packed();
        let now = now_us.map_or(String::new(), |us| us.min(pack::MOST).to_string());
        let mut call = redis::cmd("EVALSHA");
        call.arg(&script.sha).arg(tables.keys.len()).arg(&tables.keys);
        call.arg(now).arg(self.spare_ms.to_string()).arg(numbers).arg(penalties).arg(program);
        let connection = self.connection().await?;
        let mut answered = call.query_async::<Value>(connection).await;
        if let Err(error) = &answered
            && error.kind() == redis::ErrorKind::Server(redis::ServerErrorKind::NoScript)
        {
            let mut load = redis::cmd("SCRIPT");
            load.arg("LOAD").arg(&script.text);
            answered = match load.exec_async(connection).await {
                Ok(()) => call.query_async(connection).await,
                Err(error) => Err(error),
            };
        }
        answered.map_err(|error| {
            if error.is_unrecoverable_error() || error.is_timeout() {
                self.connection = None;
            }
            failure(&error)
        })
    }
}

/// A connection of its own for everything that is not a decision, so that it holds none up.
#[derive(Debug)]
pub(super) struct Control(tokio::sync::Mutex<Link>);

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("connected", &self.connection.is_some()).finish()
    }
}

impl Control {
    pub(super) fn new(client: Client, options: &Options) -> Self {
        Self(tokio::sync::Mutex::new(Link::new(client, options)))
    }

    pub(super) async fn call(
        &self,
        script: &Script,
        tables: &Tables,
        program: Vec<u8>,
        now_us: Option<u64>,
    ) -> Result<Value, StoreError> {
        self.0.lock().await.call(script, tables, program, now_us).await
    }

    pub(super) async fn forget(&self, names: Vec<Vec<u8>>) -> Result<(), StoreError> {
        let mut link = self.0.lock().await;
        let mut unlink = redis::cmd("UNLINK");
        unlink.arg(names);
        let connection = link.connection().await?;
        unlink.exec_async(connection).await.map_err(|error| failure(&error))
    }
}

/// What kind of failure it is. The server's own words may name keys, so they are left out.
fn failure(error: &RedisError) -> StoreError {
    let kind = match error.kind() {
        _ if error.is_timeout() => StoreErrorKind::Timeout,
        redis::ErrorKind::AuthenticationFailed | redis::ErrorKind::InvalidClientConfig => {
            StoreErrorKind::Rejected
        }
        redis::ErrorKind::Parse | redis::ErrorKind::UnexpectedReturnType => {
            StoreErrorKind::Protocol
        }
        _ if error.is_io_error() => StoreErrorKind::Unreachable,
        _ => StoreErrorKind::Rejected,
    };
    StoreError::new(kind, format!("{} {error}", error.category()))
}
