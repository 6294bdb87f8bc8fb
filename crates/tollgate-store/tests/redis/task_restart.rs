//! A task of the store that dies is started again, and the observer is told.

use crate::support::server::Server;
use crate::support::{long_deadline, until_healed};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tollgate_store::RedisStore;
use tollgate_store::redis::Observer;

/// Panics once in the middle of a lane, and writes down what it is told of the tasks.
#[derive(Debug, Default)]
struct Saboteur {
    connections: AtomicUsize,
    told: Mutex<Vec<String>>,
}

impl Observer for Saboteur {
    fn connected(&self, _: &str) {
        assert!(self.connections.fetch_add(1, Ordering::Relaxed) > 0, "the first one dies");
    }

    fn task_died(&self, task: &'static str) {
        self.told.lock().unwrap().push(format!("died {task}"));
    }
}

#[tokio::test]
async fn a_task_that_dies_is_started_again() {
    let server = Server::start().await;
    let saboteur = Arc::new(Saboteur::default());
    let mut options = long_deadline();
    options.connections = 1;
    options.observer = Some(saboteur.clone());
    let store = RedisStore::open(&server.endpoint(), options).unwrap();
    until_healed(&store, b"key").await;
    assert_eq!(*saboteur.told.lock().unwrap(), ["died connection"]);
    assert_eq!(store.status().task_restarts, 1);
}
