//! Eviction order: idle connections, then slow ones; never a connection about to get an answer.

use super::*;

/// A request without its last byte.
const SLOW: &[u8] = b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nx";

#[test]
fn a_slow_body_makes_room_after_the_idle() {
    run(async {
        let rig = Rig::new(Limits::default());
        let (mut slow, mut idle, mut busy) = (rig.connect(), rig.connect(), rig.connect());
        slow.write_all(SLOW).await.unwrap();
        busy.write_all(&get("/wait")).await.unwrap();
        tokio::time::sleep(seconds(1)).await;
        idle.write_all(&get("/a")).await.unwrap();
        answer(&mut idle).await;
        rig.registry.evict(None);
        assert_eq!(rest(&mut idle).await, 0);
        rig.registry.evict(None);
        assert_eq!(rest(&mut slow).await, 0);
        rig.registry.evict(None);
        rig.handler.go.notify_one();
        assert_eq!(answer(&mut busy).await.1, "waited");
        assert_eq!(rig.stats().evicted(), 2);
        rig.passed(seconds(1));
    });
}

#[test]
fn a_body_that_has_come_is_no_longer_in_the_way() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect();
        client.write_all(SLOW).await.unwrap();
        tokio::time::sleep(seconds(1)).await;
        client.write_all(b"x").await.unwrap();
        assert_eq!(answer(&mut client).await.1, "2 bytes");
        client.write_all(&get("/wait")).await.unwrap();
        tokio::time::sleep(seconds(1)).await;
        rig.registry.evict(None);
        rig.handler.go.notify_one();
        assert_eq!(answer(&mut client).await.1, "waited");
    });
}

#[test]
fn an_answer_that_is_being_read_is_not_cut() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_with(1024);
        client.write_all(&get("/large")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        rig.registry.evict(None);
        assert_eq!(answer(&mut client).await.1.len(), 100_000);
        client.write_all(&get("/large")).await.unwrap();
        tokio::time::sleep(seconds(1) + LATE).await;
        rig.registry.evict(None);
        assert!(rest(&mut client).await < 100_000, "the client did not read it");
    });
}

#[test]
fn of_those_who_came_together_the_first_goes() {
    run(async {
        let rig = Rig::new(Limits::default());
        let mut clients: Vec<_> = (0..3).map(|_| rig.connect()).collect();
        for n in 0..3 {
            rig.registry.evict(None);
            assert_eq!(rest(&mut clients[n]).await, 0);
            // The new client takes the place of the evicted one.
            clients.push(rig.connect());
        }
        let newest = clients.last_mut().unwrap();
        newest.write_all(&get("/a")).await.unwrap();
        assert_eq!(answer(newest).await.1, "/a");
    });
}
