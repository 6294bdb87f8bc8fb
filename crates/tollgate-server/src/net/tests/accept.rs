//! The accept loop: what fails is tried again, and what is full makes room.

use super::super::{
    accept::{Accept, Door, accept_all},
    worker::{Http, Service, Workers},
};
use super::*;
use std::{
    cell::RefCell,
    collections::VecDeque,
    io,
    net::{TcpListener, TcpStream},
};
use tokio::sync::watch;
use tollgate_policy::settings::Front;

/// Fails as told, then accepts.
struct Script {
    failures: RefCell<VecDeque<io::Error>>,
    listener: TcpListener,
}

impl Accept for Script {
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

const EMFILE: i32 = 24;
const ENFILE: i32 = 23;
const ENOMEM: i32 = 12;

#[test]
fn no_error_ends_the_loop() {
    let codes = [EMFILE, ENFILE, ENOMEM, EMFILE].map(io::Error::from_raw_os_error);
    let aborted = io::ErrorKind::ConnectionAborted.into();
    let failures = codes.into_iter().chain([aborted]).collect();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let door = Arc::new(Door {
        front: Front::Http,
        index: 0,
        connections_max: 10,
        stats: Arc::default(),
        room: Notify::new(),
        node: None,
    });
    let connect = Box::new(|| Box::new(Http(Rc::<Desk>::default())) as Box<_>);
    let front = Service { door: door.clone(), limits: Limits::default(), connect };
    let mut workers = Workers::default();
    let thread = workers.start([front].into()).unwrap();
    run(async {
        let (stop, stopping) = watch::channel(None);
        let source = Script { failures: RefCell::new(failures), listener };
        let start = now();
        let accepting = accept_all(source, door.clone(), &workers, stopping);
        let stopper = async {
            // Ready once every failure has been met and paused for: 10 + 20 + 40 + 80 ms.
            tokio::time::sleep(Duration::from_millis(151)).await;
            stop.send(Some(Duration::ZERO)).unwrap();
        };
        tokio::join!(accepting, stopper);
        assert_eq!((now() - start).as_millis(), 151);
    });
    assert_eq!((door.stats.accept_errors(), door.stats.accepted()), (5, 1));
    io::Write::write_all(&mut client, &get("/a")).unwrap();
    let mut text = [0; 12];
    io::Read::read_exact(&mut client, &mut text).unwrap();
    assert_eq!(&text, b"HTTP/1.1 200");
    workers.drain(Duration::ZERO);
    thread.join().unwrap();
    assert_eq!(door.stats.open(), 0);
}
