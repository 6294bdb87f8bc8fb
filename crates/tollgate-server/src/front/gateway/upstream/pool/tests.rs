//! Idle connections that the upstream has closed.

use super::{super::Upstreams, Pool, UpstreamConnection};
use std::{
    io::Write,
    net::{TcpListener, TcpStream},
    path::Path,
    rc::Rc,
    sync::Arc,
    time::Duration,
};
use tollgate::store::ProcessClock;
use tollgate_faults::clock::wait_until;
use tollgate_net::{Transport, UpstreamStream};
use tollgate_observe::metrics::Metrics;

fn upstreams(listener: &TcpListener) -> Arc<Upstreams> {
    let address = listener.local_addr().unwrap();
    let file = format!("upstream: 'http://{address}'");
    let compiled = tollgate_policy::compile(file.as_bytes()).unwrap();
    Arc::new(Upstreams::new(&compiled.settings, Path::new("."), &Metrics::default(), 1).unwrap())
}

type Case = (&'static str, fn(TcpStream));

/// The server's action on an idle stream, and whether a request that must not be sent twice gets
/// that stream afterwards. Nothing is awaited in between, so the runtime has noticed nothing.
#[test]
fn the_system_is_asked_about_a_stream_for_requests_that_are_sent_once() {
    let what: [Case; 3] = [
        ("it ends", drop),
        ("it answers nobody", |mut stream| {
            stream.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").unwrap();
            std::mem::forget(stream);
        }),
        ("it is reset", |stream| {
            socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        }),
    ];
    for (what, happens) in what {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstreams = upstreams(&listener);
        let selected = &upstreams.pick(&[], 0).unwrap();
        tokio::runtime::LocalRuntime::new().unwrap().block_on(async {
            let stream = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await;
            let (stream, theirs) = (stream.unwrap(), listener.accept().unwrap().0);
            let pool: Rc<Pool> = Rc::default();
            assert!(pool.take(selected, 0, false, true).is_none());
            let now_us = ProcessClock.now_us();
            pool.put(selected, UpstreamStream::new(Transport::Tcp(stream)), now_us);
            let Some(UpstreamConnection::Http1(stream)) = pool.take(selected, 0, false, true)
            else {
                panic!("it is alive")
            };
            happens(theirs);
            assert!(wait_until(Duration::from_secs(10), || stream.peek_is_stale()), "{what}");
            pool.put(selected, stream, now_us);
            assert!(pool.take(selected, 0, false, true).is_none(), "{what}");
        });
    }
}
