//! Signals: reload and stop.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tollgate_server::serve::RunningServer;

/// The signals of `serve`, caught from its creation on.
pub(super) struct Signals {
    runtime: Runtime,
    reload: Signal,
    stop: [(Signal, i32); 2],
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let guard = runtime.enter();
        let reload = signal(SignalKind::hangup())?;
        let stop = |kind: SignalKind| Ok::<_, io::Error>((signal(kind)?, kind.as_raw_value()));
        let stop = [stop(SignalKind::terminate())?, stop(SignalKind::interrupt())?];
        drop(guard);
        Ok(Self { runtime, reload, stop })
    }

    /// Reloads and stops on signals. Returns when the requests in flight have finished.
    pub(super) fn serve(mut self, running: RunningServer) {
        let Self { runtime, reload, stop } = &mut self;
        runtime.block_on(async {
            let reloader = running.reload();
            let next = || {
                let reloader = reloader.clone();
                // The log, the metrics and /readyz report the result.
                Box::pin(async move { drop(reloader.now().await) })
            };
            let mut reloading = None;
            // A stop must not wait for a reload, which may take long.
            poll_fn(|context| {
                loop {
                    if stopped(stop, context).is_ready() {
                        return Poll::Ready(());
                    }
                    reloading = match &mut reloading {
                        None => ready!(reload.poll_recv(context)).map(|()| next()),
                        Some(under_way) => {
                            let under_way: &mut Pin<Box<_>> = under_way;
                            ready!(under_way.as_mut().poll(context));
                            None
                        }
                    };
                }
            })
            .await;
            let (done, mut drained) = oneshot::channel::<()>();
            std::thread::spawn(move || {
                running.drain();
                drop(done);
            });
            poll_fn(|context| match stopped(stop, context) {
                // 128 plus the signal number is the status that shells use.
                Poll::Ready(number) => std::process::exit(128 + number),
                _ => Pin::new(&mut drained).poll(context).map(drop),
            })
            .await;
        });
    }
}

/// The signal that stops the process.
fn stopped(stop: &mut [(Signal, i32); 2], context: &mut Context<'_>) -> Poll<i32> {
    for (signal, number) in stop {
        if signal.poll_recv(context).is_ready() {
            return Poll::Ready(*number);
        }
    }
    Poll::Pending
}
