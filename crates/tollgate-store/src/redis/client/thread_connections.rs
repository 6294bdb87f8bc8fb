//! Connections that belong to one thread.
//!
//! A request over another thread's connection wakes that thread and is woken by it. These two
//! context switches cost more than the decision. A thread with its own runtime avoids both. Until
//! its own connections are up, its requests use the shared ones.

use super::server::Server;
use crate::redis::batch::queue::Queue;
use std::cell::RefCell;
use std::sync::{Arc, Weak};
use tokio::runtime::Handle;

thread_local! {
    static THREAD_CONNECTIONS: RefCell<ThreadConnections> = RefCell::default();
}

/// The connections of the calling thread.
#[derive(Default)]
struct ThreadConnections {
    /// By store number: the runtime, and the number of connections to each server.
    stores: Vec<(u64, Handle, usize)>,
    /// By server number: the queue of this thread's requests.
    queues: Vec<(u64, Weak<Queue>)>,
}

/// Gives the calling thread its own connections to a store's servers, on the current runtime.
pub(crate) fn attach_thread(store: u64, connections: usize) {
    THREAD_CONNECTIONS.with_borrow_mut(|own| {
        own.stores.retain(|(one, ..)| *one != store);
        own.stores.push((store, Handle::current(), connections.max(1)));
        own.queues.retain(|(_, queue)| queue.strong_count() > 0);
    });
}

/// The queue of the calling thread, if it has a connection to the server.
pub(crate) fn thread_queue(server: &Arc<Server>) -> Option<Arc<Queue>> {
    // A thread that is ending has dropped its connections.
    let found = THREAD_CONNECTIONS.try_with(|own| own.borrow_mut().queue(server)).ok()??;
    found.is_connected().then_some(found)
}

impl ThreadConnections {
    fn queue(&mut self, server: &Arc<Server>) -> Option<Arc<Queue>> {
        if let Some((_, queue)) = self.queues.iter().find(|(number, _)| *number == server.number) {
            return queue.upgrade();
        }
        let (_, runtime, connections) =
            self.stores.iter().find(|(store, ..)| *store == server.shared.number)?;
        self.queues.retain(|(_, queue)| queue.strong_count() > 0);
        let queue = server.start_thread_queue(runtime, *connections);
        self.queues.push((server.number, Arc::downgrade(&queue)));
        Some(queue)
    }
}
