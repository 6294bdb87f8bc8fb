//! The accept loop: failures are retried, and a full server makes room.

use super::*;
use crate::accept::{Accept, accept_all, worker::Workers};
use std::{
    cell::RefCell,
    collections::VecDeque,
    io,
    net::{TcpListener, TcpStream},
    thread::JoinHandle,
};
use tokio::sync::watch;

/// The log of `events`.
fn logged(events: impl FnOnce()) -> String {
    let (reader, writer) = io::pipe().unwrap();
    let make_writer = move || writer.try_clone().unwrap();
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(make_writer).finish();
    tracing::subscriber::with_default(log, events);
    io::read_to_string(reader).unwrap()
}

/// Fails a given number of times, then accepts.
struct ScriptedListener {
    failures: RefCell<VecDeque<io::Error>>,
    listener: TcpListener,
}

impl Accept for ScriptedListener {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        if let Some(error) = self.failures.borrow_mut().pop_front() {
            return Err(error);
        }
        match self.listener.accept() {
            Ok((stream, peer)) => stream.set_nonblocking(true).map(|()| (stream, peer)),
            Err(_) => std::future::pending().await,
        }
    }
}

/// One worker of a listener.
fn start_worker(listener: &Arc<ListenerState>) -> (Workers, JoinHandle<()>) {
    let mut workers = Workers::default();
    let thread = workers.start([listener.clone()].into(), None, None).unwrap();
    (workers, thread)
}

const EMFILE: i32 = 24;
const ENFILE: i32 = 23;
const ENOMEM: i32 = 12;

#[test]
fn no_error_ends_the_loop() {
    let codes = [EMFILE, ENFILE, ENOMEM, EMFILE].map(io::Error::from_raw_os_error);
    let aborted = io::ErrorKind::ConnectionAborted.into();
    let failures = codes.into_iter().chain([aborted]).collect();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut client = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
    let listener = Arc::new(listener_state(Limits::default()));
    let (workers, thread) = start_worker(&listener);
    run(async {
        let (stop, stopping) = watch::channel(None);
        let source = ScriptedListener { failures: RefCell::new(failures), listener: socket };
        let start = now();
        let accepting = accept_all(&source, listener.clone(), &workers, stopping);
        let stopper = async {
            // Long enough for all failures and their pauses: 10 + 20 + 40 + 80 ms.
            tokio::time::sleep(Duration::from_millis(151)).await;
            stop.send(Some(Duration::ZERO)).unwrap();
        };
        tokio::join!(accepting, stopper);
        assert_eq!((now() - start).as_millis(), 151);
    });
    assert_eq!((listener.stats.accept_errors(), listener.stats.accepted()), (5, 1));
    io::Write::write_all(&mut client, &get("/a")).unwrap();
    let mut text = [0; 12];
    io::Read::read_exact(&mut client, &mut text).unwrap();
    assert_eq!(&text, b"HTTP/1.1 200");
    workers.drain(Duration::ZERO);
    thread.join().unwrap();
    assert_eq!(listener.stats.open(), 0);
}

/// Fails every other time, while clients remain.
struct ExhaustedListener {
    listener: TcpListener,
    is_out: Cell<bool>,
}

impl Accept for ExhaustedListener {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let Ok(accepted) = self.listener.accept() else { return std::future::pending().await };
        match self.is_out.replace(!self.is_out.get()) {
            true => Err(io::Error::from_raw_os_error(EMFILE)),
            false => Ok(accepted),
        }
    }
}

#[test]
fn trouble_that_lasts_is_told_when_it_begins_and_when_it_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let _clients: Vec<_> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    let workers = Workers::default();
    let accepting = async {
        let (stop, stopping) = watch::channel(None);
        let source = ExhaustedListener { listener, is_out: Cell::new(false) };
        let accepting =
            accept_all(&source, Arc::new(listener_state(Limits::default())), &workers, stopping);
        let stopper = async {
            tokio::time::sleep(seconds(30)).await;
            stop.send(Some(Duration::ZERO)).unwrap();
        };
        tokio::join!(accepting, stopper);
    };
    let text = logged(|| run(accepting));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains("cannot accept") && lines[1].contains("accepting connections again"));
}

/// Has 200 connections after an error. Each accept uses up some of the task's budget, as with a
/// socket.
struct BacklogListener {
    listener: TcpListener,
    clients: RefCell<Vec<TcpStream>>,
    is_aborted: Cell<bool>,
}

impl Accept for BacklogListener {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        tokio::task::coop::consume_budget().await;
        if !self.is_aborted.replace(true) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if self.clients.borrow().len() == 200 {
            return std::future::pending().await;
        }
        self.clients.borrow_mut().push(TcpStream::connect(self.listener.local_addr()?)?);
        let (stream, peer) = self.listener.accept()?;
        stream.set_nonblocking(true).map(|()| (stream, peer))
    }
}

#[test]
fn a_drain_serves_everybody_who_had_come_by_then() {
    let listener = Arc::new(listener_state(Limits::default()));
    let (workers, thread) = start_worker(&listener);
    let source = BacklogListener {
        listener: TcpListener::bind("127.0.0.1:0").unwrap(),
        clients: RefCell::default(),
        is_aborted: Cell::new(false),
    };
    run(async {
        let (_stop, stopping) = watch::channel(Some(Duration::ZERO));
        accept_all(&source, listener.clone(), &workers, stopping).await;
    });
    assert_eq!(listener.stats.accepted(), 200);
    workers.drain(Duration::ZERO);
    thread.join().unwrap();
}
