//! The table of the tower layer, through the gateway.

#[path = "../../../../tollgate-tower/tests/it/table/mod.rs"]
pub(super) mod cases;

use super::{Backend, Gateway, read_head};
use crate::nodes::Redis;
use cases::{Case, Got, Step, answers, failing, identity, settled, shed, tokens};
use std::{
    fs,
    io::{Read, Write},
    sync::{Arc, Mutex},
};

/// An address without a listener.
const NOBODY: &str = "store: {redis: {url: 'redis://127.0.0.1:1/0'}}";

/// A gateway with the policy of a case, in front of an upstream that answers as `upstream` says.
struct TableGateway {
    gateway: Gateway,
    backend: Backend,
    upstream: Arc<Mutex<String>>,
}

impl TableGateway {
    fn new(case: &Case, store: &str) -> Self {
        let upstream: Arc<Mutex<String>> = Arc::default();
        let told = upstream.clone();
        let backend = Backend::new(move |_, stream| {
            stream.write_all(told.lock().unwrap().as_bytes()).is_ok()
        });
        let folder = super::folder();
        if let Some((name, keys)) = case.keys {
            fs::write(folder.join(name), keys).unwrap();
        }
        let file = format!(
            "listen: {{gateway: '127.0.0.1:0'}}\nupstream: {}\n{store}\n{}\n",
            backend.url(),
            case.policy
        );
        Self { gateway: Gateway::within(folder, &file), backend, upstream }
    }

    fn ask(&self, step: &Step) -> Got {
        let (status, fields, body) = step.upstream;
        let mut text = format!("HTTP/1.1 {status} Whatever\r\n");
        for (name, value) in fields {
            text += &format!("{name}: {value}\r\n");
        }
        if status != 204 {
            text += &format!("content-length: {}\r\n", body.len());
        }
        *self.upstream.lock().unwrap() = text + "\r\n" + body;
        let before = self.backend.seen().len();
        let mut request = format!("{} HTTP/1.1\r\nhost: x\r\n", step.request);
        for (name, value) in step.fields {
            request += &format!("{name}: {value}\r\n");
        }
        let mut client = self.gateway.client();
        client.send(format!("{request}\r\n").as_bytes());
        let head = read_head(&mut client.0).expect("an answer");
        let answered = fields_of(&head);
        let length = answered.iter().find(|field| field.0 == "content-length");
        let mut body = vec![0; length.map_or(0, |field| field.1.parse().unwrap())];
        client.0.read_exact(&mut body).unwrap();
        let seen = self.backend.seen().get(before).map(|seen| {
            let mut fields = fields_of(&seen.head);
            fields.push((":path".into(), seen.line().split(' ').nth(1).unwrap().into()));
            fields
        });
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Got { status, answered, body: String::from_utf8(body).unwrap(), seen }
    }
}

fn fields_of(head: &str) -> Vec<(String, String)> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    fields.map(|(name, value)| (name.to_ascii_lowercase(), value.into())).collect()
}

fn play(case: &Case, store: &str) {
    let world = TableGateway::new(case, store);
    for (index, step) in case.steps.iter().enumerate() {
        step.check(&format!("{}, step {index}", case.name), &world.ask(step));
    }
}

#[test]
fn the_table_holds() {
    let cases = [
        answers::CASES,
        identity::CASES,
        tokens::CASES,
        settled::CASES,
        failing::CASES,
        shed::CASES,
    ];
    for case in cases.into_iter().flatten() {
        play(case, if case.storeless { NOBODY } else { "" });
    }
}

/// Without the cases that settle costs: a remote store gets a settlement some time after the
/// response.
#[test]
fn the_table_holds_on_redis() {
    let redis = Redis::start();
    let cases = [answers::CASES, identity::CASES, tokens::CASES];
    for (number, case) in cases.into_iter().flatten().enumerate() {
        // Each case starts with empty counts.
        let fields = format!("url: '{}', prefix: t{number}, deadline: 10s", redis.url());
        play(case, &format!("store: {{redis: {{{fields}}}}}"));
    }
}
