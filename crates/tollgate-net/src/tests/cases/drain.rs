//! A drain lets requests finish and accepts no new connections.

use super::*;

#[test]
fn a_request_under_way_is_answered_and_told_to_go() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(&get("/wait")).await.unwrap();
        tokio::time::sleep(seconds(1)).await;
        rig.registry.drain();
        tokio::time::sleep(seconds(4)).await;
        rig.handler.go.notify_one();
        let (head, body) = answer(&mut client).await;
        assert_eq!(body, "waited");
        assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
        drop(client);
        rig.registry.wait_until_empty().await;
        rig.passed(seconds(5));
    });
}

#[test]
fn an_idle_connection_has_a_last_call() {
    run(async {
        let rig = Rig::new(Limits::default());
        let (mut asks, mut quiet, mut silent) = (rig.connect(), rig.connect(), rig.connect());
        for client in [&mut asks, &mut quiet] {
            client.write_all(&get("/a")).await.unwrap();
            answer(client).await;
        }
        tokio::time::sleep(seconds(3)).await;
        rig.registry.drain();
        // The request was in transit when the drain began.
        tokio::time::sleep(Duration::from_millis(300)).await;
        asks.write_all(&get("/b")).await.unwrap();
        let (head, body) = answer(&mut asks).await;
        assert!(body == "/b" && head.contains("\r\nconnection: close\r\n"), "{head}");
        drop(asks);
        rest(&mut quiet).await;
        rest(&mut silent).await;
        rig.registry.wait_until_empty().await;
        rig.passed(seconds(3) + Limits::default().drain_grace);
    });
}

#[test]
fn a_head_that_has_begun_may_end() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(b"GET /a HTTP/1.1\r\n").await.unwrap();
        tokio::time::sleep(seconds(1)).await;
        rig.registry.drain();
        tokio::time::sleep(seconds(3)).await;
        client.write_all(b"host: x\r\n\r\n").await.unwrap();
        assert_eq!(answer(&mut client).await.1, "/a");
    });
}

#[test]
fn a_connection_that_was_accepted_before_the_drain_is_served() {
    run(async {
        let rig = Rig::new(Limits::default());
        rig.registry.drain();
        let mut client = rig.connect();
        client.write_all(&get("/a")).await.unwrap();
        let (head, body) = answer(&mut client).await;
        assert!(body == "/a" && head.contains("\r\nconnection: close\r\n"), "{head}");
    });
}
