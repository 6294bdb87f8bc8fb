//! The gateway over pipes in virtual time, with servers on real sockets.

use super::{Gateway, GatewayState};
use crate::{
    Node,
    net::{
        Limits,
        tests::{Rig, answer, run, seconds},
    },
};
use std::{path::Path, rc::Rc, sync::Arc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A gateway before a server at this address.
fn gateway(listener: &TcpListener, more: &str) -> Rc<Gateway> {
    let address = listener.local_addr().unwrap();
    let file = format!("upstream: {{servers: 'http://{address}', {more}}}");
    let compiled = tollgate_policy::compile(file.as_bytes()).unwrap();
    let setup = tollgate::engine::Setup::of(&compiled);
    let node = Arc::new(Node::new(compiled, setup).unwrap());
    Rc::new(Gateway::new(Arc::new(GatewayState::new(node, Path::new(".")).unwrap())))
}

async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// A connection by which a whole head has come.
async fn accept(listener: TcpListener) -> TcpStream {
    let mut stream = listener.accept().await.unwrap().0;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    stream
}

/// The beginning of an answer does not buy time for the rest of its head.
#[test]
fn an_answer_in_pieces_has_the_time_of_one() {
    run(async {
        let listener = listen().await;
        let gateway = gateway(&listener, "timeouts: {response: 10s}");
        tokio::task::spawn_local(async move {
            let mut stream = accept(listener).await;
            tokio::time::sleep(seconds(8)).await;
            stream.write_all(b"HTTP/1.1 20").await.unwrap();
            std::future::pending::<()>().await;
        });
        let rig = Rig::new(Limits::default());
        let mut client = rig.connect_to(&gateway);
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        assert!(answer(&mut client).await.0.starts_with("http/1.1 504"));
        rig.passed(seconds(10));
    });
}
