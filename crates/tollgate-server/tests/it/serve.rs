//! A whole node: files, listeners, reloads.

use crate::http::Client;
use std::fs;
use std::future::Future;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tollgate_observe::metrics::{ExpositionFormat, Front, MetricsSnapshot};
use tollgate_server::config::Config;
use tollgate_server::serve::{RunningServer, Server, StartError};

/// A folder with a `tollgate.yaml`, removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, policy: &str) -> Self {
        let process = std::process::id();
        let path = std::env::temp_dir().join(format!("tollgate-node-{process}-{name}"));
        fs::create_dir_all(&path).unwrap();
        let folder = Self(path);
        folder.put(policy);
        folder
    }

    fn put(&self, policy: &str) {
        fs::write(self.0.join("next"), policy).unwrap();
        fs::rename(self.0.join("next"), self.0.join("tollgate.yaml")).unwrap();
    }

    fn config(&self) -> Config {
        Config::file(self.0.join("tollgate.yaml"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn client(address: SocketAddr) -> Client {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    Client(stream)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Waits for the policy of this generation, for as long as the test may run.
fn wait_for_generation(running: &RunningServer, generation: u64) {
    while running.node().gate.rules().generation() < generation {
        thread::sleep(Duration::from_millis(1));
    }
}

/// A limit of a thousand a year for one user, beside a limit that differs in every version of the
/// file.
fn version(number: usize) -> String {
    let rate = number + 1_000_000;
    let algorithm = ["gcra", "fixed-window", "sliding-window"][number % 3];
    let profile = ["draft-11", "draft-7", "none"][number % 3];
    format!(
        "listen: {{http: '127.0.0.1:0', admin: '127.0.0.1:0'}}
headers: {profile}
limits:
  - {{name: other-{number}, rate: {rate}/s, algorithm: {algorithm}}}
  - {{name: thousand, key: [user], rate: 1000/366d, algorithm: gcra}}
  - {{name: shadow, key: [user], rate: {rate}/min, mode: shadow}}"
    )
}

/// The watcher reloads twenty renamed files, and two hundred reloads are requested, while four
/// connections send requests. Each answer is 200 or 429, a thousand are admitted, and all are
/// counted.
#[test]
fn reloads_under_load_lose_no_request_and_no_count() {
    let folder = Folder::new("load", &version(0));
    let running = Server::start(folder.config()).unwrap();
    let address = running.address(Front::Http).unwrap();
    let done = AtomicBool::new(false);
    let ask = || {
        let mut client = client(address);
        let mut statuses = [0_u64; 2];
        // Enough requests to use all thousand units.
        while !done.load(Ordering::Relaxed) || statuses[0] + statuses[1] < 1_100 {
            let answer = client.post("/v1/check", "{\"attributes\": {\"user\": \"42\"}}");
            match answer.status {
                200 => statuses[0] += 1,
                429 => statuses[1] += 1,
                _ => panic!("{answer:?}"),
            }
        }
        statuses
    };
    let totals = thread::scope(|scope| {
        let clients = [(); 4].map(|()| scope.spawn(ask));
        let mut generation = 1;
        for number in 1..=20 {
            folder.put(&version(number));
            generation += 1;
            wait_for_generation(&running, generation);
        }
        let reload = running.reload();
        for number in 0..200 {
            folder.put(&version(number));
            block_on(reload.now()).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        clients.map(|client| client.join().unwrap())
    });
    let [admitted, refused] = [0, 1].map(|at| totals.iter().map(|one| one[at]).sum::<u64>());
    assert_eq!(admitted, 1000);
    let counts = running.node().gate.counts();
    let thousand = &counts.iter().find(|count| *count.0 == *"thousand").unwrap().1;
    assert_eq!((thousand.admitted, thousand.refused), (1000, refused));
    let metrics = running
        .node()
        .metrics
        .exposition(&MetricsSnapshot::default(), ExpositionFormat::Prometheus);
    let line = |name: &str| {
        let found = metrics.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap().trim().parse::<u64>().unwrap()
    };
    assert_eq!(line("tollgate_reload_total{result=\"error\"}"), 0);
    // The watcher may have seen some of the last two hundred changes by itself.
    assert!(line("tollgate_reload_total{result=\"ok\"}") >= 220);
    running.drain();
}

#[test]
fn a_bad_file_is_refused_with_its_place_and_the_old_one_stays() {
    let folder = Folder::new("refused", &version(0));
    let running = Server::start(folder.config()).unwrap();
    folder.put("limits: [{name: a, rat: 1/s}]");
    let error = block_on(running.reload().now()).unwrap_err().to_string();
    assert!(error.contains("tollgate.yaml:1:20: error[TG002]: unknown field `rat`"), "{error}");
    let address = running.address(Front::Http).unwrap();
    assert_eq!(client(address).post("/v1/check", "{\"attributes\": {}}").status, 200);
    assert!(running.node().health.is_ready());
    assert_eq!(running.node().health.problems().len(), 1);
}

#[test]
fn a_reload_after_the_end_says_so() {
    let folder = Folder::new("after", &version(0));
    let running = Server::start(folder.config()).unwrap();
    let reload = running.reload();
    running.drain();
    assert_eq!(block_on(reload.now()).unwrap_err().to_string(), "the process is stopping");
}

#[test]
fn a_node_that_cannot_have_every_address_has_none() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let busy = taken.local_addr().unwrap();
    let policy = format!("listen: {{http: '{free}', admin: '{busy}'}}");
    let folder = Folder::new("address", &policy);
    let error = Server::start(folder.config()).unwrap_err();
    assert!(matches!(error, StartError::Bind(_)));
    assert!(error.to_string().contains(&busy.to_string()), "{error}");
    assert!(TcpStream::connect(free).is_err());
}

#[test]
fn idle_state_goes_while_nothing_happens() {
    let policy = "listen: {http: '127.0.0.1:0'}
store: {memory: {max_bytes: 64KiB}}
limits: [{name: a, key: [user], rate: 1/ms, algorithm: gcra}]";
    let folder = Folder::new("sweep", policy);
    let running = Server::start(folder.config()).unwrap();
    let mut client = client(running.address(Front::Http).unwrap());
    for user in 0..100 {
        let body = format!("{{\"attributes\": {{\"user\": \"{user}\"}}}}");
        assert_eq!(client.post("/v1/check", &body).status, 200);
    }
    while running.node().gate.store().memory().unwrap().stats().keys > 0 {
        thread::sleep(Duration::from_millis(10));
    }
}

fn reload_as(address: SocketAddr, token: &str) -> crate::http::Answer {
    let mut client = client(address);
    let head = format!("authorization: Bearer {token}\r\ncontent-length: 0\r\n");
    client.send(format!("POST /v1/reload HTTP/1.1\r\nhost: x\r\n{head}\r\n").as_bytes());
    client.answer()
}

#[test]
fn the_admin_call_reloads_and_its_token_is_that_of_the_file_in_force() {
    let policy = |token: &str, rest: &str| {
        format!("listen: {{admin: '127.0.0.1:0'}}\nadmin: {{token: {token}}}\n{rest}")
    };
    let (first, second) = ("a-token-of-some-length", "another-token-of-a-length");
    let folder = Folder::new("admin", &policy(first, ""));
    let running = Server::start(folder.config()).unwrap();
    let address = running.address(Front::Admin).unwrap();
    let answer = reload_as(address, first);
    assert_eq!((answer.status, answer.json()["generation"].as_u64()), (200, Some(2)), "{answer:?}");
    folder.put(&policy(first, "limits: [{name: a, rat: 1/s}]"));
    let answer = reload_as(address, first);
    assert_eq!(answer.status, 422);
    assert!(answer.body.contains("unknown field `rat`"), "{answer:?}");
    folder.put(&policy(second, ""));
    block_on(running.reload().now()).unwrap();
    assert_eq!(reload_as(address, first).status, 401);
    assert_eq!(reload_as(address, second).status, 200);
    folder.put(&policy("{env: TOLLGATE_NO_SUCH_VARIABLE}", ""));
    let answer = reload_as(address, second);
    assert!(
        answer.status == 422 && answer.body.contains("TOLLGATE_NO_SUCH_VARIABLE"),
        "{answer:?}"
    );
    assert_eq!(reload_as(address, second).status, 422, "the last good token stays");
}
