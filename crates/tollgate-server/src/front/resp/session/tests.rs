use super::{Resp, RespState};
use crate::Node;
use crate::config::Config;
use std::rc::Rc;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tollgate_net::Limits;
use tollgate_net::tests::rig::{Rig, run, seconds};

fn resp() -> (Rig, Rc<Resp>) {
    let loaded = Config::built_in().load().unwrap();
    let setup = loaded.setup();
    let node = Arc::new(Node::new(loaded.compiled, setup).unwrap());
    let rig = Rig::new(Resp::limits(&Limits::default()));
    (rig, Rc::new(Resp::new(RespState::new(node))))
}

/// Reads until the other side closes.
async fn rest(client: &mut DuplexStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    text
}

async fn ping(client: &mut DuplexStream) {
    client.write_all(b"PING\r\n").await.unwrap();
    let mut answer = [0; 7];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}

#[test]
fn a_client_that_sends_nothing_is_closed_after_ten_seconds() {
    run(async {
        let (rig, resp) = resp();
        assert_eq!(rest(&mut rig.connect_protocol(&resp)).await, "");
        rig.passed(seconds(10));
    });
}

#[test]
fn an_idle_client_is_closed_after_five_minutes() {
    run(async {
        let (rig, resp) = resp();
        let mut client = rig.connect_protocol(&resp);
        for _ in 0..3 {
            ping(&mut client).await;
            tokio::time::sleep(seconds(299)).await;
        }
        assert_eq!(rest(&mut client).await, "");
        rig.passed(seconds(2 * 299 + 300));
    });
}

#[test]
fn more_bytes_of_a_command_buy_no_more_time() {
    for begin in ["*1\r\n$400\r\n", "PING "] {
        run(async {
            let (rig, resp) = resp();
            let mut client = rig.connect_protocol(&resp);
            ping(&mut client).await;
            tokio::time::sleep(seconds(60)).await;
            client.write_all(begin.as_bytes()).await.unwrap();
            let (mut read, mut write) = tokio::io::split(client);
            tokio::task::spawn_local(async move {
                while write.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(seconds(3)).await;
                }
            });
            let mut text = String::new();
            read.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, "");
            rig.passed(seconds(70));
        });
    }
}

#[test]
fn each_command_has_its_own_time() {
    run(async {
        let (rig, resp) = resp();
        let mut client = rig.connect_protocol(&resp);
        for _ in 0..5 {
            client.write_all(b"PI").await.unwrap();
            tokio::time::sleep(seconds(9)).await;
            client.write_all(b"NG\r\n").await.unwrap();
            let mut answer = [0; 7];
            client.read_exact(&mut answer).await.unwrap();
        }
    });
}
