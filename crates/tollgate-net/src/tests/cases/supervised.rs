//! A panic of one thread affects no other thread.

use super::*;
use crate::supervise::{Attempt, Supervisor};
use crate::{
    FrontendServer, Listener,
    accept::{Accept, accept_on, worker::Workers},
};
use crate::{Health, WatchedThreads};
use std::{
    io::{self, Read, Write},
    net::TcpStream,
    num::NonZero,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};
use tokio::sync::watch;
use tollgate_policy::settings::Front;

/// A running node, with its threads.
struct WatchedNode {
    health: Arc<Health>,
    threads: Arc<WatchedThreads>,
}

fn node() -> WatchedNode {
    let health = Arc::<Health>::default();
    health.set_serving(true);
    WatchedNode { threads: Arc::new(WatchedThreads::new(health.clone())), health }
}

fn ask(client: &mut TcpStream) {
    client.write_all(&get("/a")).unwrap();
    let mut text = [0; 12];
    client.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"HTTP/1.1 200");
}

#[test]
fn a_worker_that_panics_begins_again() {
    let (node, listener) =
        (node(), Listener::bind(Front::Http, "127.0.0.1:0".parse().unwrap()).unwrap());
    let (address, calls, was_ready) =
        (listener.address(), AtomicUsize::new(0), Arc::new(AtomicBool::new(true)));
    let seen = (node.health.clone(), was_ready.clone());
    let desk = move || {
        if calls.fetch_add(1, Relaxed) == 0 {
            panic!("as asked");
        }
        seen.1.store(seen.0.is_ready(), Relaxed);
        TestHandler::default()
    };
    let one = NonZero::<usize>::MIN;
    let builder = FrontendServer::builder().watched_by(node.threads.clone()).workers(one);
    let _server = builder.front(listener, Limits::default(), desk).start().unwrap();
    ask(&mut TcpStream::connect(address).unwrap());
    assert!(!was_ready.load(Relaxed), "traffic was kept away meanwhile");
    assert!(node.health.is_ready(), "{:?}", node.health.problems());
}

#[test]
fn nobody_waits_for_a_worker_that_is_missing() {
    let (node, listener) =
        (node(), Listener::bind(Front::Http, "127.0.0.1:0".parse().unwrap()).unwrap());
    let address = listener.address();
    let desk = || match std::thread::current().name() {
        Some("worker-0") => panic!("as ever"),
        _ => TestHandler::default(),
    };
    let builder = FrontendServer::builder()
        .watched_by(node.threads.clone())
        .workers(NonZero::new(2).unwrap());
    let server = builder.front(listener, Limits::default(), desk).start().unwrap();
    while node.health.is_ready() {
        std::thread::yield_now();
    }
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut client = TcpStream::connect(address).unwrap();
        ask(&mut client);
        held.push(client);
    }
    assert!(!node.health.is_ready());
    assert_eq!(node.health.problems()[0].0, "http-worker-0");
    // The drop returns although one thread never starts working.
    drop(server);
}

/// Blocks its thread until the test releases it.
struct StuckHandler(std::sync::Mutex<std::sync::mpsc::Receiver<()>>);

impl Handler for Arc<StuckHandler> {
    async fn handle(&self, _: Request<'_>, _: &Rc<ClientConnection>, _: &mut HttpResponse) {
        self.0.lock().unwrap().recv().unwrap();
    }
}

#[test]
fn a_stuck_worker_keeps_traffic_away_and_is_named() {
    let (node, listener) =
        (node(), Listener::bind(Front::Http, "127.0.0.1:0".parse().unwrap()).unwrap());
    let address = listener.address();
    let (go, gate) = std::sync::mpsc::channel();
    let handler = Arc::new(StuckHandler(gate.into()));
    let builder =
        FrontendServer::builder().watched_by(node.threads.clone()).workers(NonZero::<usize>::MIN);
    let builder = builder.front(listener, Limits::default(), move || handler.clone());
    let _server = builder.start().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(&get("/a")).unwrap();
    let problems = || node.health.problems();
    // Requests come faster here than threads answer, so the accept thread may miss some too.
    let ask_until = |is_done: &dyn Fn() -> bool| {
        while !is_done() {
            node.threads.ask(1);
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    ask_until(&|| problems().iter().any(|(subject, _)| subject == "http-worker-0"));
    assert!(!node.health.is_ready());
    ask_until(&|| problems().len() == 1);
    go.send(()).unwrap();
    ask_until(&|| node.health.is_ready());
    assert!(problems().is_empty());
}

/// Panics the first time.
struct PanickingListener(AtomicBool);

impl Accept for PanickingListener {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        assert!(self.0.swap(true, Relaxed), "as asked");
        std::future::pending().await
    }
}

#[test]
fn an_accept_loop_that_panics_begins_again() {
    let node = node();
    let sources = [(
        Arc::new(PanickingListener(AtomicBool::new(false))),
        Arc::new(listener_state(Limits::default())),
    )];
    let supervisor = Supervisor::new("http-accept".to_owned(), Some(node.threads.clone()));
    let (stop, stopping) = watch::channel(None);
    let mut turns = Vec::new();
    supervisor.run(|turn| {
        turns.push((turn, node.health.is_ready()));
        if turn == Attempt::Restart {
            stop.send(Some(Duration::ZERO)).unwrap();
        }
        let workers = Arc::new(Workers::default());
        run(accept_on(&sources, &workers, &stopping, &supervisor));
    });
    assert_eq!(turns, [(Attempt::First, true), (Attempt::Restart, false)]);
    assert!(node.health.is_ready());
}
