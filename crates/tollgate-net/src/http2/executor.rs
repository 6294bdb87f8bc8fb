//! Executors that run the tasks of hyper's HTTP/2 on the thread of a worker.

use hyper::rt::Executor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use std::{cell::RefCell, mem, pin::Pin, rc::Rc};

/// New requests of one connection. One poll completes most of them, so they need no task. They are
/// polled together after all input is read, so that their answers share a write.
#[derive(Clone, Default)]
pub(super) struct NewStreams(Rc<RefCell<Vec<StreamFuture>>>);

type StreamFuture = Pin<Box<dyn Future<Output = ()>>>;

impl<F: Future<Output = ()> + 'static> Executor<F> for NewStreams {
    fn execute(&self, stream: F) {
        self.0.borrow_mut().push(Box::pin(stream));
    }
}

impl NewStreams {
    /// Polls each new stream once, and spawns a task for each unfinished one. Returns whether there
    /// were any.
    pub(super) fn poll_each_once(&self) -> bool {
        let mut streams = mem::take(&mut *self.0.borrow_mut());
        if streams.is_empty() {
            return false;
        }
        for mut stream in streams.drain(..) {
            // The task that continues the stream registers its own waker.
            let mut context = Context::from_waker(Waker::noop());
            let polled = catch_unwind(AssertUnwindSafe(|| stream.as_mut().poll(&mut context)));
            // The panic was already logged and counted. It ends the stream, as it would end a task.
            if let Ok(Poll::Pending) = polled {
                tokio::task::spawn_local(stream);
            }
        }
        // Returns the vector to keep its memory.
        *self.0.borrow_mut() = streams;
        true
    }
}

/// Spawns the tasks of HTTP/2 connections to upstreams.
#[derive(Clone, Copy, Debug)]
pub struct LocalExecutor;

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(stream);
    }
}
