//! The admin API, called as its handler and over a socket.

mod access;
mod audited;
mod changes;
mod errors;
mod explain;
mod halfway;
mod hosts;
mod reads;
mod secrets;
mod socket;
mod watch;

use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{Request, Response};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tollgate::engine::{GateBuffers, GateSetup};
use tollgate_server::front::admin::{
    Access, Admin, LastReload, PolicyControl, PolicyOrigin, ReloadFailure,
};
use tollgate_server::node::Node;

pub(crate) const TOKEN: &str = "s3cret-token";

/// The policy of tests that do not have their own.
pub(crate) const POLICY: &str = r#"
admin: {token: s3cret-token, audit: {file: /dev/null}}
limits:
  - {name: per-user, key: [user], rate: 2/d, algorithm: gcra, tiers: {pro: 10/d}}
  - {name: login, keys: [[ip, user], [ip]], rate: 5/min, disclose: false, mode: shadow}
  - {name: everyone, rate: 1000/s, algorithm: token-bucket, burst: 2000}
  - {name: "odd %name", key: [api_key], rate: 5/d, penalty: {after: 2, block: 1h}}
tiers: {from: tier}
"#;

/// A node with an admin API, without sockets.
pub(crate) struct Desk {
    pub(crate) node: Arc<Node>,
    pub(crate) admin: Arc<Admin>,
    pub(crate) control: Arc<FakeControl>,
    folder: Option<PathBuf>,
}

/// A process that reloads on request.
#[derive(Default)]
pub(crate) struct FakeControl {
    pub(crate) node: Mutex<Option<Arc<Node>>>,
    pub(crate) file: Mutex<String>,
    pub(crate) last: Mutex<Option<LastReload>>,
}

impl FakeControl {
    fn reload_now(&self) -> Result<(), ReloadFailure> {
        let file = self.file.lock().unwrap().clone();
        let compiled = tollgate_policy::compile(file.as_bytes());
        let mut last = LastReload { time_us: 1_700_000_000_000_000, error: None };
        let done = match compiled {
            Ok(compiled) => {
                let setup = GateSetup::of(&compiled);
                self.node.lock().unwrap().as_ref().unwrap().replace(compiled, setup).unwrap();
                Ok(())
            }
            Err(diagnostics) => {
                let message = diagnostics[0].message.clone();
                last.error = Some(message.clone());
                Err(ReloadFailure { message, diagnostics: diagnostics.into() })
            }
        };
        *self.last.lock().unwrap() = Some(last);
        done
    }
}

impl PolicyControl for FakeControl {
    /// Waits while a test holds the file.
    fn reload(&self) -> Pin<Box<dyn Future<Output = Result<(), ReloadFailure>> + Send + '_>> {
        Box::pin(async {
            while self.file.try_lock().is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            self.reload_now()
        })
    }

    fn policy_origin(&self) -> PolicyOrigin {
        PolicyOrigin {
            file: Some("tollgate.yaml".into()),
            last_reload: self.last.lock().unwrap().clone(),
        }
    }
}

/// A decoded answer.
#[derive(Debug)]
pub(crate) struct AdminAnswer {
    pub(crate) status: u16,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) text: String,
}

impl AdminAnswer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|why| panic!("{why}: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(POLICY)
    }

    pub(crate) fn with(policy: &str) -> Self {
        Self::build(policy, None)
    }

    /// With an audit log in its own folder.
    pub(crate) fn audited(name: &str) -> Self {
        Self::audited_with(name, POLICY)
    }

    /// With an audit log in its own folder, and a policy whose audit file is /dev/null.
    pub(crate) fn audited_with(name: &str, policy: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("tollgate-admin-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self::build(&policy.replace("/dev/null", "audit.jsonl"), Some(folder))
    }

    fn build(policy: &str, folder: Option<PathBuf>) -> Self {
        let compiled = tollgate_policy::compile(policy.as_bytes()).unwrap();
        let beside = folder.as_deref().unwrap_or(Path::new("."));
        let access = Access::new(&compiled.settings, |_| None).unwrap();
        let setup = GateSetup::of(&compiled);
        let node = Arc::new(Node::in_folder(beside, compiled, setup).unwrap());
        let control = Arc::new(FakeControl::default());
        *control.node.lock().unwrap() = Some(Arc::clone(&node));
        *control.file.lock().unwrap() = policy.to_owned();
        let held: Arc<dyn PolicyControl> = control.clone();
        let admin = Arc::new(Admin::new(Arc::clone(&node), access, held));
        Self { node, admin, control, folder }
    }

    /// Calls with the token.
    pub(crate) fn call(&self, method: &str, path: &str, body: &str) -> AdminAnswer {
        let bearer = format!("Bearer {TOKEN}");
        let mut fields = vec![("authorization", &*bearer)];
        if !body.is_empty() {
            fields.push(("content-type", "application/json"));
        }
        self.call_with(method, path, &fields, body)
    }

    pub(crate) fn call_with(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> AdminAnswer {
        self.call_from("192.0.2.1:5000", method, path, fields, body)
    }

    pub(crate) fn call_from(
        &self,
        peer: &str,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: &str,
    ) -> AdminAnswer {
        let mut request = Request::builder().method(method).uri(path);
        if fields.iter().all(|(name, _)| *name != "host") {
            request = request.header("host", "localhost");
        }
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        self.call_head(&request.body(()).unwrap().into_parts().0, peer, body)
    }

    fn call_head(&self, head: &Parts, peer: &str, body: &str) -> AdminAnswer {
        let body = async || Ok(body.as_bytes().into());
        take_apart(block_on(self.admin.answer(head, peer.parse().unwrap(), body)))
    }

    /// Decides a request like a front end. Returns whether it is admitted.
    pub(crate) fn check(&self, attributes: &[(&str, &str)]) -> bool {
        let rules = self.node.gate.rules();
        let mut facts = rules.facts(Default::default());
        for (name, value) in attributes {
            facts.set(name, value).unwrap();
        }
        let now_us = self.node.clock.now_us();
        let mut work = GateBuffers::default();
        block_on(self.node.gate.check(&rules, now_us, &facts, 1, &mut work)).allowed
    }

    /// The lines of the audit log.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let path = self.folder.as_ref().unwrap().join("audit.jsonl");
        let text = std::fs::read_to_string(path).unwrap();
        assert!(!text.contains(TOKEN), "{text}");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // The node and the process that reloads it reference each other.
        *self.control.node.lock().unwrap() = None;
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn take_apart(response: Response<Bytes>) -> AdminAnswer {
    let (head, body) = response.into_parts();
    let text = String::from_utf8(body.to_vec()).unwrap();
    AdminAnswer { status: head.status.as_u16(), headers: head.headers, text }
}
