//! A tunnel ends when no byte has passed for its idle time, counted from the last byte.

use super::*;
use crate::{
    connection::{CoarseTimer, ConnectionStream, InFlightRequest},
    upgrade::{self as tunnel, Tunnel},
};
use bytes::Bytes;

/// Both ends of a tunnel with an idle time of four seconds.
fn open_tunnel(rig: &Rig, room: usize) -> (DuplexStream, DuplexStream) {
    let (client, near, registration) = rig.registration(room);
    let (service, far) = tokio::io::duplex(room);
    tokio::task::spawn_local(async move {
        let state = registration.state.clone();
        // The connection has no deadline of its own.
        let _in_flight = InFlightRequest::new(&state);
        let (stream, left, idle) = (Box::new(far), Bytes::new(), seconds(4));
        let tunnel = Tunnel { stream, buffered: left, idle, guard: None };
        let timer = CoarseTimer::new(state.timers.clone());
        tunnel::run(
            ConnectionStream::new(Transport::Pipe(near), state.clone()),
            Vec::new(),
            tunnel,
            timer,
            &state,
        )
        .await;
    });
    (client, service)
}

#[test]
fn silence_is_counted_from_the_start_or_from_the_last_byte() {
    for (bytes, is_clients, end_s) in [(0, true, 4), (1, true, 5), (1, false, 5), (5, true, 9)] {
        run(async {
            let rig = Rig::new(Limits::default());
            let (mut client, mut service) = open_tunnel(&rig, 1024);
            for _ in 0..bytes {
                tokio::time::sleep(seconds(1)).await;
                let from = if is_clients { &mut client } else { &mut service };
                from.write_all(b"x").await.unwrap();
            }
            let (client, service) = (rest(&mut client).await, rest(&mut service).await);
            let (mine, yours) = if is_clients { (client, service) } else { (service, client) };
            assert_eq!((mine, yours), (0, bytes));
            rig.passed(seconds(end_s));
        });
    }
}

#[test]
fn what_is_taken_late_has_passed_late() {
    run(async {
        let rig = Rig::new(Limits::default());
        let (mut client, mut service) = open_tunnel(&rig, 1000);
        client.write_all(&[b'x'; 3000]).await.unwrap();
        let mut piece = [0; 1000];
        for _ in 0..2 {
            tokio::time::sleep(seconds(3)).await;
            service.read_exact(&mut piece).await.unwrap();
        }
        assert_eq!(rest(&mut client).await, 0);
        rig.passed(seconds(6 + 4));
    });
}
