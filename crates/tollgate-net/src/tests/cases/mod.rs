//! Connections over pipes in virtual time: a minute's silence takes no time to test.

mod accept;
mod deadlines;
mod drain;
mod eviction;
mod http2;
mod supervised;
mod upgrade;

use crate::tests::rig::*;
use crate::{
    ClientConnection, Handler, HttpResponse, Limits, Request, Stats,
    accept::ListenerState,
    connection::{Transport, serve_http},
};
use std::{cell::Cell, net::SocketAddr, rc::Rc, sync::Arc, time::Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

impl Rig {
    pub(crate) fn connect(&self) -> DuplexStream {
        self.connect_with(64 * 1024)
    }

    pub(crate) fn connect_with(&self, room: usize) -> DuplexStream {
        self.connect_and_see(&self.handler, room).0
    }

    pub(crate) fn stats(&self) -> &Stats {
        &self.listener.stats
    }

    /// Waits until all connections have ended.
    pub(crate) async fn emptied(&self) {
        self.registry.wait_until_empty().await;
    }
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").into_bytes()
}

#[test]
fn a_connection_serves_one_request_after_another() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        for path in ["/a", "/b"] {
            client.write_all(&get(path)).await.unwrap();
            let (head, body) = answer(&mut client).await;
            assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
            assert_eq!(body, path);
        }
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        let requests: Vec<u8> = (0..40).flat_map(|n| get(&format!("/{n}"))).collect();
        client.write_all(&requests).await.unwrap();
        for n in 0..40 {
            assert_eq!(answer(&mut client).await.1, format!("/{n}"));
        }
    });
}

#[test]
fn a_client_that_has_said_all_still_gets_its_answer() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(&get("/wait")).await.unwrap();
        client.shutdown().await.unwrap();
        tokio::time::sleep(seconds(5)).await;
        rig.handler.go.notify_one();
        assert_eq!(answer(&mut client).await.1, "waited");
        assert_eq!(rest(&mut client).await, 0);
    });
}

#[test]
fn a_head_has_a_largest_size() {
    run(async {
        let rig = Rig::new(Limits::default());
        for (bytes, status) in [(15_000, "200"), (17_000, "431"), (60_000, "431")] {
            let mut client = rig.connect();
            let filler = "x".repeat(bytes);
            let head = format!("GET / HTTP/1.1\r\nhost: x\r\nfiller: {filler}\r\n\r\n");
            client.write_all(head.as_bytes()).await.unwrap();
            assert!(
                answer(&mut client).await.0.starts_with(&format!("http/1.1 {status}")),
                "{bytes}"
            );
        }
        let mut client = rig.connect();
        let fields: String = (0..101).map(|n| format!("field-{n}: x\r\n")).collect();
        client.write_all(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes()).await.unwrap();
        assert!(answer(&mut client).await.0.starts_with("http/1.1 431"));
    });
}

#[test]
fn a_panic_ends_its_own_connection_and_is_counted() {
    run(async {
        let rig = Rig::new(Limits::default());
        let (mut bad, mut good) = (rig.connect(), rig.connect());
        good.write_all(&get("/wait")).await.unwrap();
        bad.write_all(&get("/panic")).await.unwrap();
        assert_eq!(rest(&mut bad).await, 0);
        rig.handler.go.notify_one();
        assert_eq!(answer(&mut good).await.1, "waited");
        assert_eq!(rig.stats().panics(), 1);
    });
}

#[test]
fn when_there_is_no_room_the_longest_idle_goes() {
    run(async {
        let rig = Rig::new(Limits::default());
        let (mut busy, mut older, mut newer) = (rig.connect(), rig.connect(), rig.connect());
        busy.write_all(&get("/wait")).await.unwrap();
        older.write_all(&get("/a")).await.unwrap();
        answer(&mut older).await;
        tokio::time::sleep(seconds(1)).await;
        newer.write_all(&get("/a")).await.unwrap();
        answer(&mut newer).await;
        rig.registry.evict(Some(1));
        rig.registry.evict(Some(0));
        assert_eq!(rest(&mut older).await, 0);
        newer.write_all(&get("/b")).await.unwrap();
        assert_eq!(answer(&mut newer).await.1, "/b");
        rig.registry.evict(None);
        rig.registry.evict(None);
        assert_eq!(rest(&mut newer).await, 0);
        rig.handler.go.notify_one();
        assert_eq!(
            answer(&mut busy).await.1,
            "waited",
            "a connection with a request in flight is not closed"
        );
        assert_eq!(rig.stats().evicted(), 2);
    });
}
