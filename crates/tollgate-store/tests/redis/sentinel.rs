//! Through a sentinel, from one primary to the next.

use crate::connecting::RIGHTS;
use crate::leased::spread::Spread;
use crate::support::server::{Server, free_port};
use crate::support::{
    RecordingObserver, a_day, long_deadline, short_deadline, take, until_failed, until_healed,
};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tollgate_store::redis::{Endpoint, RedisOptions};
use tollgate_store::{RedisStore, StoreErrorKind};

#[tokio::test]
async fn it_follows_the_primary() {
    let mut first = Server::listen(&[]).await;
    let of_first = ["--replicaof", &format!("127.0.0.1 {}", first.port)];
    let second = Server::listen(&of_first).await;
    loop {
        if format!("{:?}", second.run("INFO replication").await).contains("link_status:up") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let sentinel = Server::listen(&["--sentinel"]).await;
    sentinel.run(&format!("SENTINEL MONITOR store 127.0.0.1 {} 1", first.port)).await;
    sentinel.run("SENTINEL SET store down-after-milliseconds 500").await;
    sentinel.run("SENTINEL SET store failover-timeout 2000").await;
    let mut options = long_deadline();
    options.deadline = Duration::from_millis(500);
    options.breaker_probe = Duration::from_millis(100);
    // The first sentinel does not exist, which is no reason to give up.
    let nodes = [("127.0.0.1".into(), 1), ("127.0.0.1".into(), sentinel.port)];
    let endpoint = Endpoint::sentinel("store", nodes);
    let store = RedisStore::open(&endpoint, options.clone()).unwrap();
    until_healed(&store, b"key").await;
    assert!(take(&store, b"one", &a_day(1)).await.unwrap());
    let mut reading = options.clone();
    reading.replica_reads = true;
    let reading = RedisStore::open(&endpoint, reading).unwrap();
    until_healed(&reading, b"key").await;
    crate::replica::until_read(&reading, &[&second]).await;
    let mut leasing = crate::leased::client::options();
    (leasing.deadline, leasing.breaker_probe) = (options.deadline, options.breaker_probe);
    let open = |_| RedisStore::open(&endpoint, leasing.clone()).unwrap();
    let mut spread = Spread::new((0..2).map(open).collect());
    spread.round(200).await;
    // The sentinel has to have heard of the replica.
    loop {
        if format!("{:?}", sentinel.run("SENTINEL REPLICAS store").await).contains("slave-priority")
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    first.kill();
    until_healed(&store, b"key").await;
    let role = format!("{:?}", second.run("ROLE").await);
    assert!(role.contains("master"), "{role}");
    assert!(!take(&store, b"one", &a_day(1)).await.unwrap(), "the count went along");
    // What was the replica is the primary, which has none.
    until_healed(&reading, b"key").await;
    assert!(!crate::replica::peek(&reading, &[b"one"], &a_day(1), None).await.0);
    spread.round(300).await;
    spread.check(true);
}

/// A sentinel that names the server at this port, and waits for longer than a test before it doubts
/// it.
async fn naming(port: u16) -> Server {
    let sentinel = Server::listen(&["--sentinel"]).await;
    name(&sentinel, port).await;
    sentinel
}

async fn name(sentinel: &Server, port: u16) {
    sentinel.run(&format!("SENTINEL MONITOR store 127.0.0.1 {port} 2")).await;
    sentinel.run("SENTINEL SET store down-after-milliseconds 600000").await;
}

async fn rename(sentinel: &Server, port: u16) {
    sentinel.run("SENTINEL REMOVE store").await;
    name(sentinel, port).await;
}

fn endpoint(sentinels: &[&Server]) -> Endpoint {
    let nodes = sentinels.iter().map(|one| ("127.0.0.1".to_owned(), one.port));
    Endpoint::sentinel("store", nodes)
}

fn noting(mut options: RedisOptions) -> (RecordingObserver, RedisOptions) {
    let notes = RecordingObserver::default();
    options.observer = Some(Arc::new(notes.clone()));
    (notes, options)
}

/// How often the server ran a command.
async fn calls(server: &Server, command: &str) -> u64 {
    let text = match server.run("INFO commandstats").await {
        redis::Value::BulkString(bytes) => String::from_utf8(bytes).unwrap(),
        redis::Value::VerbatimString { text, .. } => text,
        other => panic!("{other:?}"),
    };
    let start = format!("cmdstat_{command}:calls=");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

/// Answers like a sentinel that has heard of a newer configuration than all others.
struct Liar {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Liar {
    fn start(names: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        // They end with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let counted = Arc::clone(&counted);
                thread::spawn(move || Self::answer(&stream.unwrap(), &counted, &names.to_string()));
            }
        });
        Self { port, asked }
    }

    fn answer(mut stream: &TcpStream, asked: &AtomicUsize, names: &str) {
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let answer = match line.as_str() {
                "GET-MASTER-ADDR-BY-NAME" => {
                    asked.fetch_add(1, Ordering::Relaxed);
                    format!("*2\r\n{}{}", bulk("127.0.0.1"), bulk(names))
                }
                "MASTER" => format!("*2\r\n{}{}", bulk("config-epoch"), bulk("99")),
                "PING" => "+PONG\r\n".to_owned(),
                _ => continue,
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

async fn until(what: &str, mut is: impl AsyncFnMut() -> bool) {
    for _ in 0..3_000 {
        if is().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: not within 30 s");
}

#[tokio::test]
async fn one_sentinel_that_names_a_dead_primary_keeps_nobody_from_the_living() {
    let living = Server::listen(&[]).await;
    let (stale, one, two) =
        (naming(free_port()).await, naming(living.port).await, naming(living.port).await);
    let store = RedisStore::open(&endpoint(&[&stale, &one, &two]), long_deadline()).unwrap();
    until_healed(&store, b"key").await;
    // Alone against one other it is tried, and found out.
    let store = RedisStore::open(&endpoint(&[&stale, &one]), long_deadline()).unwrap();
    until_healed(&store, b"key").await;
}

#[tokio::test]
async fn a_server_that_says_it_is_a_replica_is_not_the_primary_whoever_names_it() {
    let primary = Server::listen(&[]).await;
    let of_primary = ["--replicaof", &format!("127.0.0.1 {}", primary.port)];
    let replica = Server::listen(&of_primary).await;
    let (wrong, right) = (naming(replica.port).await, naming(primary.port).await);
    let (notes, options) = noting(long_deadline());
    let store = RedisStore::open(&endpoint(&[&wrong, &right]), options).unwrap();
    until_healed(&store, b"key").await;
    assert_eq!(calls(&replica, "evalsha").await, 0, "it was never asked to decide");
    assert_eq!(notes.count("opened"), 0, "{:?}", notes.all());
    let store = RedisStore::open(&endpoint(&[&wrong]), short_deadline()).unwrap();
    let error = until_failed(&store, b"key").await.to_string();
    let says = format!("name 127.0.0.1:{}, which is a replica", replica.port);
    assert!(error.contains(&says), "{error}");
}

#[tokio::test]
async fn a_sentinel_that_hangs_holds_nobody_up() {
    let primary = Server::listen(&[]).await;
    let (one, two, hung) =
        (naming(primary.port).await, naming(primary.port).await, naming(primary.port).await);
    hung.signal("STOP");
    let store = RedisStore::open(&endpoint(&[&hung, &one, &two]), long_deadline()).unwrap();
    until_healed(&store, b"key").await;
    let store = RedisStore::open(&endpoint(&[&hung, &one]), long_deadline()).unwrap();
    until_healed(&store, b"key").await;
    hung.signal("CONT");
}

#[tokio::test]
async fn connections_to_a_primary_that_goes_on_are_given_up_when_most_name_another() {
    let (first, second) = (Server::listen(&[]).await, Server::listen(&[]).await);
    let (one, two) = (naming(first.port).await, naming(first.port).await);
    let liar = Liar::start(second.port);
    let nodes = [liar.port, one.port, two.port].map(|port| ("127.0.0.1".to_owned(), port));
    let (notes, options) = noting(long_deadline());
    let store = RedisStore::open(&Endpoint::sentinel("store", nodes), options).unwrap();
    assert!(take(&store, b"key", &a_day(1)).await.unwrap());
    // A single sentinel moves no node, however often it is asked.
    let before = liar.asked();
    until("it is asked", async || liar.asked() >= before + 10).await;
    assert!(!take(&store, b"key", &a_day(1)).await.unwrap(), "the same count");
    assert_eq!(calls(&second, "evalsha").await, 0);
    assert_eq!(notes.count("primary store"), 0, "{:?}", notes.all());
    rename(&two, second.port).await;
    until("it moves", async || notes.count("primary store") == 1).await;
    let before = calls(&first, "evalsha").await;
    assert!(take(&store, b"key", &a_day(1)).await.unwrap(), "another server, another count");
    assert!(!take(&store, b"key", &a_day(1)).await.unwrap());
    assert_eq!(calls(&first, "evalsha").await, before);
    let says = format!("primary store 127.0.0.1:{}", second.port);
    assert_eq!(notes.count(&says), 1, "{:?}", notes.all());
    assert_eq!(notes.count("opened"), 0, "nobody was left alone: {:?}", notes.all());
}

#[tokio::test]
async fn a_failover_on_purpose_is_followed_before_the_old_primary_knows() {
    let first = Server::listen(&[]).await;
    let of_first = ["--replicaof", &format!("127.0.0.1 {}", first.port)];
    let second = Server::listen(&of_first).await;
    let sentinel = naming(first.port).await;
    let says = async |server: &Server, command: &str, what: &str| {
        format!("{:?}", server.run(command).await).contains(what)
    };
    until("it replicates", async || says(&second, "INFO replication", "link_status:up").await)
        .await;
    until("it is known", async || says(&sentinel, "SENTINEL REPLICAS store", "slave-prio").await)
        .await;
    let (notes, options) = noting(long_deadline());
    let store = RedisStore::open(&endpoint(&[&sentinel]), options).unwrap();
    assert!(take(&store, b"key", &a_day(1)).await.unwrap());
    until("it is there too", async || says(&second, "DBSIZE", "int(1)").await).await;
    sentinel.run("SENTINEL FAILOVER store").await;
    until("it moves", async || notes.count("primary store") == 1).await;
    let before = calls(&first, "evalsha").await;
    assert!(!take(&store, b"key", &a_day(1)).await.unwrap(), "the count went along");
    assert_eq!(calls(&first, "evalsha").await, before);
    assert_eq!(notes.count("opened"), 0, "{:?}", notes.all());
}

#[tokio::test]
async fn why_no_sentinel_answers_is_said() {
    let primary = Server::listen(&[]).await;
    let sentinel = naming(primary.port).await;
    sentinel.run("ACL SETUSER default resetpass >marker-pw").await;
    let all = || endpoint(&[&sentinel]);
    let with = |password: &str| all().sentinel_credentials(None, Some(password.into()));
    let other = Endpoint::sentinel("other", [("127.0.0.1".into(), sentinel.port)]);
    let other = other.sentinel_credentials(None, Some("marker-pw".into()));
    for (endpoint, says) in [
        (all(), "NOAUTH: it wants a password, which is `sentinel.password`"),
        (with("wrong"), "the credentials, which are `sentinel.username` and `sentinel.password`"),
        (other, "it does not monitor other"),
    ] {
        let store = RedisStore::open(&endpoint, short_deadline()).unwrap();
        let error = until_failed(&store, b"key").await;
        assert!(error.to_string().contains(says), "{error}");
        assert!(error.to_string().contains(&format!("127.0.0.1:{}", sentinel.port)), "{error}");
        assert!(!error.to_string().contains("marker"), "{error}");
        let kinds = [StoreErrorKind::Rejected, StoreErrorKind::BreakerOpen];
        assert!(kinds.contains(&error.kind), "{error}");
    }
    let store = RedisStore::open(&with("marker-pw"), long_deadline()).unwrap();
    until_healed(&store, b"key").await;
}

#[tokio::test]
async fn a_user_that_may_not_ask_for_its_role_is_served_all_the_same() {
    let primary = Server::listen(&[]).await;
    primary.run(&format!("ACL SETUSER gate on >marker-pw {RIGHTS}")).await;
    let sentinel = naming(primary.port).await;
    sentinel.run("ACL SETUSER gate on >pw -@all +sentinel|get-master-addr-by-name").await;
    let endpoint = endpoint(&[&sentinel])
        .credentials(Some("gate".into()), Some("marker-pw".into()))
        .sentinel_credentials(Some("gate".into()), Some("pw".into()));
    let store = RedisStore::open(&endpoint, long_deadline()).unwrap();
    until_healed(&store, b"key").await;
}
