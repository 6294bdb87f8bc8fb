//! State in Redis or Valkey, shared by many processes.
//!
//! A request is decided inside Redis by one script, all-or-nothing, at the server's own time. Requests that wait at the same moment
//! share a call. The script decides with Lua mirrors of the algorithms, and the rows are worked out on this side from what it read.

mod adjust;
mod batch;
mod key;
mod lane;
mod options;
mod pack;
mod replay;
mod reply;
mod reservation;
mod script;

pub use options::Options;

use crate::{
    Adjustment, Answers, Charge, Ended, Opened, Opening, Place, Plan, Request, Store, StoreError,
    Ticket,
};
use adjust::Changes;
use key::Namer;
use lane::{Control, Queue};
use reply::Adjusted;
use std::sync::Arc;
use tollgate_core::Numbers;

/// One Redis server as a store.
#[derive(Debug)]
pub struct RedisStore {
    namer: Namer,
    queue: Arc<Queue>,
    control: Control,
    options: Options,
}

impl RedisStore {
    /// A store on the server that `client` names. It connects in the background, on the runtime that this is called in, and again whenever the
    /// connection is lost; until then every call fails at its deadline.
    pub fn new(client: redis::Client, options: Options) -> Self {
        let queue = Arc::new(Queue::new(options.in_flight));
        for _ in 0..options.connections.max(1) {
            tokio::spawn(lane::run(client.clone(), Arc::clone(&queue), options.clone()));
        }
        let namer = Namer::new(&options.prefix, &options.secret);
        Self { namer, queue, control: Control::new(client, &options), options }
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Store for RedisStore {
    async fn decide<'a>(
        &'a self,
        now_us: u64,
        requests: &'a [Request<'a>],
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        answers.clear();
        self.queue.ask(&self.namer, self.options.at(now_us), requests, answers, &self.options).await
    }

    async fn adjust<'a>(
        &'a self,
        now_us: u64,
        adjustments: &'a [Adjustment<'a>],
        answers: &'a mut Answers,
    ) -> Result<(), StoreError> {
        answers.clear();
        let changes = Changes::new(&self.namer, adjustments);
        let now_us = self.options.at(now_us);
        let value =
            self.control.call(&script::ADJUST, &changes.tables, changes.program(), now_us).await?;
        adjust::rows(adjustments, &Adjusted::read(value)?, answers)
    }

    async fn reset<'a>(&'a self, limit: u64, key: &'a [u8]) -> Result<(), StoreError> {
        self.control.forget(self.namer.names(limit, key)).await
    }

    async fn open<'a>(
        &'a self,
        now_us: u64,
        opening: &'a Opening<'a>,
    ) -> Result<Opened, StoreError> {
        self.open_record(now_us, opening).await
    }

    async fn end<'a>(
        &'a self,
        now_us: u64,
        id: &'a str,
        end: u64,
        plan: &'a Plan<'a>,
        answers: &'a mut Answers,
    ) -> Result<Option<Ended>, StoreError> {
        self.end_record(now_us, id, end, plan, answers).await
    }

    fn place(&self, charge: &Charge<'_>) -> Place {
        Place::new(self.namer.name(charge.limit, charge.key, charge.numbers))
    }

    fn enroll(&self, _: &Numbers) -> Ticket {
        Ticket::default()
    }
}
