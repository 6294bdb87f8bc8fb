//! A limit is exact for any number of concurrent requests.

use super::*;

#[test]
fn many_connections_are_admitted_exactly_as_often_as_one_would_be() {
    let served = serve("limits: [{name: a, key: [user], rate: 1000/h, algorithm: fixed-window}]");
    let admitted: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..64)
            .map(|_| {
                let mut client = served.client();
                scope.spawn(move || {
                    let asked = (0..40)
                        .map(|_| client.post("/v1/check", r#"{"attributes": {"user": "1"}}"#));
                    asked.filter(|answer| answer.status == 200).count()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert_eq!(admitted, 1000);
    assert_eq!(served.server.stats()[0].1.accepted(), 64);
}
