//! Threads with connections of their own.
//!
//! A request that is decided over a connection of another thread wakes that thread, and is woken by
//! it: two changes of thread, which cost more than the decision. A thread with a runtime of its own
//! can be spared them. What is asked on it waits in a queue of its own and goes over a connection
//! of its own; as long as that one is not up, it takes the way of all others.

use super::node::Node;
use crate::redis::batch::queue::Queue;
use std::cell::RefCell;
use std::sync::{Arc, Weak};
use tokio::runtime::Handle;

thread_local! {
    static DESK: RefCell<ThreadConnections> = RefCell::default();
}

/// What one thread has.
#[derive(Default)]
struct ThreadConnections {
    /// The stores that it has connections to, by number: where they live, and how many to each
    /// server.
    stores: Vec<(u64, Handle, usize)>,
    /// By the number of the server, what waits for it.
    queues: Vec<(u64, Weak<Queue>)>,
}

/// Gives the calling thread connections of its own to the servers of the store with this number, on
/// the runtime that this is called in.
pub(crate) fn attach_thread(store: u64, lanes: usize) {
    DESK.with_borrow_mut(|desk| {
        desk.stores.retain(|(one, ..)| *one != store);
        desk.stores.push((store, Handle::current(), lanes.max(1)));
        // Those of a runtime that has ended make room for others.
        desk.queues.retain(|(_, queue)| queue.strong_count() > 0);
    });
}

/// What the calling thread's requests for the server wait in, if they have a connection of their
/// own.
pub(crate) fn thread_queue(node: &Arc<Node>) -> Option<Arc<Queue>> {
    // A thread that is about to end has no desk any more.
    let found = DESK.try_with(|desk| desk.borrow_mut().queue(node)).ok()??;
    found.is_connected().then_some(found)
}

impl ThreadConnections {
    fn queue(&mut self, node: &Arc<Node>) -> Option<Arc<Queue>> {
        if let Some((_, queue)) = self.queues.iter().find(|(number, _)| *number == node.number) {
            return queue.upgrade();
        }
        let (_, runtime, lanes) =
            self.stores.iter().find(|(store, ..)| *store == node.shared.number)?;
        self.queues.retain(|(_, queue)| queue.strong_count() > 0);
        let queue = node.start_thread_queue(runtime, *lanes);
        self.queues.push((node.number, Arc::downgrade(&queue)));
        Some(queue)
    }
}
