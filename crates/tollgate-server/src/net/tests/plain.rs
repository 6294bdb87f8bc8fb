//! The short way ends wherever the full protocol would end, and hands over whatever is not its own.

use super::*;

fn post(path: &str) -> Vec<u8> {
    let body = "{}";
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{body}"
    )
    .into_bytes()
}

#[test]
fn both_ways_take_turns_and_keep_the_order() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        let paths = ["/plain", "/plain", "/a", "/plain", "/b"];
        let requests: Vec<u8> = paths.iter().flat_map(|path| post(path)).collect();
        client.write_all(&requests).await.unwrap();
        // Once the full protocol has the connection it keeps it, so the last but one comes to the other method.
        for expected in ["plainly", "plainly", "/a", "/plain", "/b"] {
            assert_eq!(answer(&mut client).await.1, expected);
        }
        assert_eq!(rig.desk.handled.get(), 3);
    });
}

#[test]
fn a_request_in_pieces_goes_the_long_way() {
    run(async {
        let rig = Rig::new(Limits::default());
        for at in [1, 10, 40, post("/plain").len() - 1] {
            let mut client = rig.connect();
            client.write_all(&post("/plain")).await.unwrap();
            assert_eq!(answer(&mut client).await.1, "plainly");
            client.write_all(&post("/plain")[..at]).await.unwrap();
            tokio::time::sleep(seconds(1)).await;
            client.write_all(&post("/plain")[at..]).await.unwrap();
            assert_eq!(answer(&mut client).await.1, "/plain", "{at}");
        }
    });
}

#[test]
fn the_deadlines_are_the_same() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(&post("/plain")).await.unwrap();
        assert_eq!(answer(&mut client).await.1, "plainly");
        assert_eq!(rest(&mut client).await, 0);
        rig.passed(seconds(60));
        assert_eq!(rig.stats().expired(), 1);
    });
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        let mut both = post("/plain");
        both.extend_from_slice(b"POST /pl");
        client.write_all(&both).await.unwrap();
        assert_eq!(answer(&mut client).await.1, "plainly");
        assert!(answer(&mut client).await.0.starts_with("http/1.1 408"));
        rig.passed(seconds(10));
    });
}

#[test]
fn a_reader_who_never_reads_is_closed() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_with(200);
        client.write_all(&post("/plain-large")).await.unwrap();
        rig.registry.emptied().await;
        rig.passed(seconds(60));
        assert_eq!(rig.stats().expired(), 1);
    });
}

#[test]
fn a_drain_is_announced() {
    run(async {
        let rig = Rig::new(Limits::default());
        let (mut idle, mut waits) = (rig.connect(), rig.connect());
        idle.write_all(&post("/plain")).await.unwrap();
        answer(&mut idle).await;
        waits.write_all(&post("/plain-wait")).await.unwrap();
        tokio::time::sleep(seconds(1)).await;
        rig.registry.drain();
        idle.write_all(&post("/plain")).await.unwrap();
        rig.desk.go.notify_one();
        for client in [&mut idle, &mut waits] {
            let (head, _) = answer(client).await;
            assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
            assert_eq!(rest(client).await, 0);
        }
    });
}

#[test]
fn who_has_said_all_is_answered_and_closed() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(&post("/plain")).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(answer(&mut client).await.1, "plainly");
        assert_eq!(rest(&mut client).await, 0);
        rig.registry.emptied().await;
        assert_eq!(rig.stats().expired(), 0);
    });
}

#[test]
fn a_panic_is_counted() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(&post("/plain-panic")).await.unwrap();
        assert_eq!(rest(&mut client).await, 0);
        assert_eq!(rig.stats().panics(), 1);
    });
}
