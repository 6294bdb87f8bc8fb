//! HTTP/2 streams that have just come.

use hyper::rt::Executor;
use std::{
    cell::RefCell,
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

/// Requests of one connection on which nobody has begun to work.
///
/// Most come whole and are decided without waiting, so that beginning with one is also its end and
/// it needs no task of its own. They are begun together, after all that has come has been read:
/// with one after the other, each answer would be a write.
#[derive(Clone, Default)]
pub(super) struct NewStreams(Rc<RefCell<Vec<StreamFuture>>>);

type StreamFuture = Pin<Box<dyn Future<Output = ()>>>;

impl<F: Future<Output = ()> + 'static> Executor<F> for NewStreams {
    fn execute(&self, stream: F) {
        self.0.borrow_mut().push(Box::pin(stream));
    }
}

impl NewStreams {
    /// Works on each as far as that goes without waiting, and has a task wait for the rest. `false`
    /// when there is none.
    pub(super) fn poll_each_once(&self) -> bool {
        let mut streams = mem::take(&mut *self.0.borrow_mut());
        if streams.is_empty() {
            return false;
        }
        for mut stream in streams.drain(..) {
            // Whatever it waits for learns whom to wake when its task goes on with it.
            let mut context = Context::from_waker(Waker::noop());
            let polled = catch_unwind(AssertUnwindSafe(|| stream.as_mut().poll(&mut context)));
            // A panic has been told and counted, and ends the stream as it would end a task.
            if let Ok(Poll::Pending) = polled {
                tokio::task::spawn_local(stream);
            }
        }
        // For those who come next.
        *self.0.borrow_mut() = streams;
        true
    }
}

impl fmt::Debug for NewStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewStreams").finish_non_exhaustive()
    }
}

/// Runs tasks of HTTP/2 connections to upstreams on the worker that they belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalExecutor;

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(stream);
    }
}
