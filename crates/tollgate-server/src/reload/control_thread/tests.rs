use super::{ControlThread, ReloadTask, reload_channel};
use crate::Node;
use crate::config::{Config, ConfigError};
use crate::reload::{AppliedPolicy, ReloadError};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tollgate_net::Supervisor;

/// Panics at the first reload, and records the node's health at the next poll.
struct Fragile {
    node: Arc<Node>,
    reloads: usize,
    looks: Arc<AtomicUsize>,
    after: Arc<Mutex<Option<String>>>,
}

impl ReloadTask for Fragile {
    fn reload(&mut self) -> Result<AppliedPolicy, ConfigError> {
        self.reloads += 1;
        assert!(self.reloads > 1, "as asked");
        Ok(AppliedPolicy { generation: 7, limits: 0, restart_for: Vec::new() })
    }

    fn poll(&mut self) {
        self.looks.fetch_add(1, Relaxed);
        if self.reloads == 1 && !self.node.health.is_ready() {
            let why = self.node.health.problems()[0].0.to_string();
            self.after.lock().unwrap().get_or_insert(why);
        }
    }
}

fn node(config: &Config) -> Arc<Node> {
    let loaded = config.load().unwrap();
    let setup = loaded.setup();
    let node = Node::new(loaded.compiled, setup).unwrap();
    node.health.set_serving(true);
    Arc::new(node)
}

#[test]
fn a_panic_is_told_to_who_asked_and_the_next_reload_works() {
    let config = Config::built_in();
    let node = node(&config);
    let looks = Arc::new(AtomicUsize::new(0));
    let after = Arc::new(Mutex::new(None));
    let care =
        Fragile { node: node.clone(), reloads: 0, looks: looks.clone(), after: after.clone() };
    let control = ControlThread::start(node.clone(), care, reload_channel(&config)).unwrap();
    let reload = control.reload().clone();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = runtime.block_on(reload.now()).unwrap_err();
    assert!(matches!(error, ReloadError::Panicked), "{error}");
    let broke_off = looks.load(Relaxed);
    while looks.load(Relaxed) < broke_off + 2 {
        std::thread::yield_now();
    }
    assert_eq!(after.lock().unwrap().as_deref(), Some("control"));
    assert_eq!(runtime.block_on(reload.now()).unwrap().generation, 7);
    let before = looks.load(Relaxed);
    while looks.load(Relaxed) < before + 2 {
        std::thread::yield_now();
    }
    assert!(node.health.is_ready(), "{:?}", node.health.problems());
    drop(control);
    let error = runtime.block_on(reload.now()).unwrap_err();
    assert!(matches!(error, ReloadError::Stopping), "{error}");
}

/// Never returns from its first poll.
struct Stuck(std::sync::mpsc::Sender<()>);

impl ReloadTask for Stuck {
    fn reload(&mut self) -> Result<AppliedPolicy, ConfigError> {
        unreachable!("it looks for ever")
    }

    fn poll(&mut self) {
        self.0.send(()).unwrap();
        loop {
            std::thread::park();
        }
    }
}

#[test]
fn an_end_does_not_wait_for_a_look_that_does_not_end() {
    let config = Config::built_in();
    let (looking, looks) = std::sync::mpsc::channel();
    let control =
        ControlThread::start(node(&config), Stuck(looking), reload_channel(&config)).unwrap();
    looks.recv().unwrap();
    drop(control);
}

/// Does nothing.
struct Unneeded;

impl ReloadTask for Unneeded {
    fn reload(&mut self) -> Result<AppliedPolicy, ConfigError> {
        unreachable!("not called")
    }

    fn poll(&mut self) {}
}

#[test]
fn a_thread_without_a_sign_of_life_is_noticed() {
    let config = Config::built_in();
    let node = node(&config);
    let _silent = Supervisor::watched("http-worker-7".to_owned(), Some(node.threads.clone()));
    let _control = ControlThread::start(node.clone(), Unneeded, reload_channel(&config)).unwrap();
    while node.health.is_ready() {
        std::thread::park_timeout(crate::reload::poll::POLL_INTERVAL);
    }
    assert_eq!(node.health.problems()[0].0, "http-worker-7");
}
