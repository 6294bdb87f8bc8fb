//! Ports, sockets, TLS, users, databases and prefixes.

use crate::support::server::{Server, free_port};
use crate::support::{RecordingObserver, a_day, long_deadline, take, until_failed, until_healed};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tollgate_store::redis::{Endpoint, Tls};
use tollgate_store::{Answers, RedisStore, Store, StoreCall, StoreErrorKind};

/// What a user of the store may do, as the documentation has it.
pub(crate) const RIGHTS: &str = "resetkeys ~tg:* resetchannels -@all +evalsha +eval +get +mget +set +incrby +pttl +unlink \
                      +time +ping +select";

#[tokio::test]
async fn a_user_with_the_least_of_rights_in_another_database() {
    let server = Server::listen(&[]).await;
    server.run(&format!("ACL SETUSER gate on >marker-pw {RIGHTS}")).await;
    let endpoint = Endpoint::tcp("127.0.0.1", server.port)
        .credentials(Some("gate".into()), Some("marker-pw".into()))
        .database(3);
    assert!(!format!("{endpoint:?}").contains("marker"));
    let mut options = long_deadline();
    options.caller_time = false;
    let store = RedisStore::open(&endpoint, options).unwrap();
    assert!(take(&store, b"key", &a_day(1)).await.unwrap());
    assert!(!take(&store, b"key", &a_day(1)).await.unwrap());
    store
        .call(0, StoreCall::Reset { limit: 1, key: b"key" }, &mut Answers::default())
        .await
        .unwrap();
    assert!(take(&store, b"key", &a_day(1)).await.unwrap());
    let keyspace = format!("{:?}", server.run("INFO keyspace").await);
    assert!(keyspace.contains("db3:keys=1,") && !keyspace.contains("db0"), "{keyspace}");
    assert!(!format!("{store:?}").contains("marker"), "{store:?}");
}

#[tokio::test]
async fn a_user_without_a_password_is_not_the_default_user() {
    let server = Server::start().await;
    server.run(&format!("ACL SETUSER gate on nopass {RIGHTS}")).await;
    let endpoint = server.endpoint().credentials(Some("gate".into()), None);
    let store = RedisStore::open(&endpoint, long_deadline()).unwrap();
    assert!(take(&store, b"key", &a_day(1)).await.unwrap());
    let clients = format!("{:?}", server.run("CLIENT LIST").await);
    assert!(clients.contains("user=gate"), "{clients}");
}

#[tokio::test]
async fn prefixes_and_secrets_keep_stores_apart() {
    let server = Server::start().await;
    let open = |prefix: &str, password: Option<&str>, secret: &[u8]| {
        let mut options = long_deadline();
        (options.prefix, options.secret) = (prefix.into(), secret.into());
        // This user accepts any.
        let user = password.map(|_| "default".to_owned());
        let endpoint = server.endpoint().credentials(user, password.map(Into::into));
        RedisStore::open(&endpoint, options).unwrap()
    };
    for (n, store) in [
        open("tg", None, b""),
        open("other", None, b""),
        open("tg", Some("one"), b""),
        open("tg", Some("two"), b""),
        open("tg", Some("two"), b"secret"),
    ]
    .iter()
    .enumerate()
    {
        assert!(take(store, b"key", &a_day(1)).await.unwrap(), "store {n} counts by itself");
    }
    let same = open("tg", Some("one"), b"secret");
    assert!(!take(&same, b"key", &a_day(1)).await.unwrap(), "one secret, one count");
}

#[tokio::test]
async fn the_servers_of_a_cluster_are_no_news_when_they_are_first_found() {
    let server = Server::listen(&["--cluster-enabled", "yes"]).await;
    server.run("CLUSTER ADDSLOTSRANGE 0 16383").await;
    let (notes, mut options) = (RecordingObserver::default(), long_deadline());
    options.observer = Some(Arc::new(notes.clone()));
    let endpoint = Endpoint::cluster([("127.0.0.1".into(), server.port)]);
    let store = RedisStore::open(&endpoint, options).unwrap();
    until_healed(&store, b"key").await;
    assert_eq!(notes.count("changed"), 0, "{:?}", notes.all());
}

#[tokio::test]
async fn no_cluster_where_one_is_said_to_be() {
    let server = Server::listen(&[]).await;
    let nowhere = free_port();
    for (port, kind, says) in [
        (server.port, StoreErrorKind::Rejected, "not part of a cluster"),
        (nowhere, StoreErrorKind::Unreachable, "refused"),
    ] {
        let endpoint = Endpoint::cluster([("127.0.0.1".into(), port)]);
        let store = RedisStore::open(&endpoint, long_deadline()).unwrap();
        // At once, and not when the deadline is over.
        let error = take(&store, b"key", &a_day(1)).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(store.is_breaker_open(), "nobody is asked");
    }
}

#[tokio::test]
async fn tls_with_an_authority_and_a_certificate_of_its_own() {
    let port = free_port();
    let port_text = port.to_string();
    let server = Server::prepare();
    let files = certificates(server.folder());
    let path = |name: &str| files.join(name).display().to_string();
    let arguments = [
        "--tls-port",
        &port_text,
        "--tls-cert-file",
        &path("server.pem"),
        "--tls-key-file",
        &path("server.key"),
        "--tls-ca-cert-file",
        &path("ca.pem"),
    ];
    let server = server.launch(&arguments).await;
    let read = |name: &str| fs::read(files.join(name)).unwrap();
    let mut tls = Tls::default();
    tls.ca = Some(read("ca.pem"));
    tls.client = Some((read("client.pem"), read("client.key")));
    let endpoint = |tls: &Tls| Endpoint::tcp("localhost", port).tls(tls.clone());
    let store = RedisStore::open(&endpoint(&tls), long_deadline()).unwrap();
    assert!(take(&store, b"key", &a_day(1)).await.unwrap());
    // Without its certificate the server sends it away, and the server itself is not trusted
    // without the authority.
    let (mut nobody, mut distrustful) = (tls.clone(), tls.clone());
    nobody.client = None;
    distrustful.ca = Some(read("other.pem"));
    for broken in [nobody, distrustful] {
        let store = RedisStore::open(&endpoint(&broken), long_deadline()).unwrap();
        let error = until_failed(&store, b"key").await;
        assert_ne!(error.kind, StoreErrorKind::Protocol, "{error}");
    }
    tls.ca = Some(b"no certificate".to_vec());
    let error = RedisStore::open(&endpoint(&tls), long_deadline()).unwrap_err();
    assert!(error.to_string().contains("PEM"), "{error}");
    drop(server);
}

/// Two authorities, and what the first vouches for.
fn certificates(folder: &Path) -> std::path::PathBuf {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(folder).stderr(Stdio::null());
        assert!(command.status().unwrap().success(), "openssl {arguments}");
    };
    for name in ["ca", "other"] {
        openssl(&format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.pem -subj /CN={name} -days 2"
        ));
    }
    fs::write(folder.join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    for name in ["server", "client"] {
        openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}"
        ));
        openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out {name}.pem -days 2 -extfile names"
        ));
    }
    folder.to_owned()
}
