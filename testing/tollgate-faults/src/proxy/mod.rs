//! A TCP proxy with network faults: delays, jitter, slicing, silence in one or both directions,
//! resets.

mod hanging_listener;
mod pipe;
#[cfg(test)]
mod tests;

pub use hanging_listener::HangingListener;

use pipe::Direction;
use socket2::SockRef;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

/// The faults of all connections, including existing ones.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// The delay of every piece, in each direction.
    pub latency: Duration,
    /// The random part of the delay.
    pub jitter: Duration,
    /// The number of pieces in 1,000 that are delayed further, and the delay.
    pub late: (u32, Duration),
    /// The bytes forwarded at a time.
    pub slice: Option<usize>,
    /// Whether bytes to the server are dropped.
    pub no_requests: bool,
    /// Whether bytes from the server are dropped.
    pub no_replies: bool,
    /// The number of replies in 1,000 that are lost, each with its connection.
    pub lost_replies: u32,
    /// Whether forwarding is paused, without loss.
    pub paused: bool,
    /// Whether new connections are accepted and their bytes dropped.
    pub swallow_new: bool,
}

/// A proxy in front of one server.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    faults: watch::Sender<Faults>,
    /// The number of resets of all connections.
    resets: watch::Sender<u64>,
    accepted: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy to a local port, without faults.
    pub fn start(target: u16) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let (faults, told) = watch::channel(Faults::default());
        let (resets, reset) = watch::channel(0);
        let accepted = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = oneshot::channel::<()>();
        let count = accepted.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, target));
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, target, told, reset, count) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { port, faults, resets, accepted, stop: Some(stop), thread: Some(thread) })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets the faults.
    pub fn set(&self, faults: Faults) {
        self.faults.send_replace(faults);
    }

    /// Resets every connection.
    pub fn reset(&self) {
        self.resets.send_modify(|resets| *resets += 1);
    }

    /// The number of accepted connections.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(
    listener: std::net::TcpListener,
    target: SocketAddr,
    faults: watch::Receiver<Faults>,
    resets: watch::Receiver<u64>,
    accepted: Arc<AtomicU64>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        accepted.fetch_add(1, Relaxed);
        tokio::spawn(connection(client, target, faults.clone(), resets.clone()));
    }
}

/// Serves one connection until it is closed or reset.
async fn connection(
    client: TcpStream,
    target: SocketAddr,
    faults: watch::Receiver<Faults>,
    mut resets: watch::Receiver<u64>,
) {
    resets.mark_unchanged();
    let _ = client.set_nodelay(true);
    let leads_nowhere = faults.borrow().swallow_new;
    let served = async {
        if leads_nowhere {
            return pipe::read_and_discard(&client).await;
        }
        let Ok(server) = TcpStream::connect(target).await else { return };
        let _ = server.set_nodelay(true);
        tokio::select! {
            () = pipe::run(&client, &server, faults.clone(), Direction::Requests) => {}
            () = pipe::run(&server, &client, faults, Direction::Replies) => {}
        }
    };
    tokio::select! {
        () = served => {}
        _ = resets.changed() => {
            // With a linger time of zero, closing sends a reset.
            let _ = SockRef::from(&client).set_linger(Some(Duration::ZERO));
        }
    }
}
