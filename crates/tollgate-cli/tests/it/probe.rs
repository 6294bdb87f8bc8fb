//! `tollgate check --probe` on Redis servers of every kind.

use super::run;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tollgate_faults::cluster::Cluster;
use tollgate_faults::redis::Redis;
use tollgate_faults::sentinel::Sentinels;

/// A policy with this store.
fn file(store: &str) -> String {
    format!("store: {{redis: {{{store}, deadline: 10s}}}}\nlimits: [{{name: a, rate: 5/s}}]\n")
}

fn probe(store: &str) -> (i32, String) {
    let (status, out, err) = run(&["check", "--probe", "-"], &file(store));
    (status, format!("{out}{err}"))
}

fn on(redis: &Redis, fields: &str) -> String {
    format!("url: '{}'{fields}", redis.url())
}

/// The user of docs/operations.md, with another password.
fn documented() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find(|line| line.starts_with("user tollgate ")).unwrap();
    line.strip_prefix("user ").unwrap().replace("PASSWORD", "pw")
}

/// The rights that docs/operations.md adds for leased limits.
fn leases_need() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find(|line| line.starts_with("| `consistency: leased`")).unwrap();
    let words = line.split([' ', '`']);
    words.filter_map(|word| word.strip_prefix('+')).map(str::to_owned).collect()
}

#[test]
fn it_says_what_the_store_is() {
    let redis = Redis::start();
    let (status, out) = probe(&on(&redis, ""));
    assert_eq!(status, 0, "{out}");
    for line in [
        "-: store: version: redis ",
        "-: store: mode: standalone\n",
        "-: store: latency: ",
        "-: store: eviction: noeviction\n",
        "-: store: clock: ",
        "-: store: permissions: all that are needed\n",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    let (_, out, _) = run(&["check", "--probe", "--format", "json", "-"], &file(&on(&redis, "")));
    let rows: Value = serde_json::from_str(&out).unwrap();
    let store = rows.as_array().unwrap().iter().find(|row| row["severity"] == "info").unwrap();
    assert_eq!(store["store"]["mode"], "standalone");
    assert!(store["store"]["clock_ahead_us"].as_i64().unwrap().abs() < 1_000_000, "{store}");
}

#[test]
fn a_store_that_forgets_is_warned_of() {
    let redis = Redis::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let (status, out) = probe(&on(&redis, ""));
    assert_eq!(status, 0, "{out}");
    let warned = out.contains("warning: the store forgets counts") && out.contains("allkeys-lru");
    assert!(warned, "{out}");
    let strict = ["check", "--probe", "--deny", "warnings", "-"];
    assert_eq!(run(&strict, &file(&on(&redis, ""))).0, 1);
}

#[test]
fn every_right_that_is_missing_is_named() {
    let redis = Redis::start();
    let user = documented();
    redis.run(&format!("ACL SETUSER {user}"));
    let store = on(&redis, ", username: tollgate, password: pw");
    let (status, out) = probe(&store);
    assert_eq!(status, 0, "the documented rights are enough: {out}");
    let rights: Vec<_> = user.split(' ').filter_map(|word| word.strip_prefix('+')).collect();
    assert!(rights.len() > 7, "{user}");
    for right in rights {
        redis.run(&format!("ACL SETUSER tollgate -{right}"));
        // A cached script would not be sent in full, and the error would not show.
        let (status, out) = probe(&store);
        // Without INFO, the probe still succeeds.
        assert_eq!(status, i32::from(right != "info"), "{right}: {out}");
        let named = format!("command {}", right.to_uppercase());
        assert!(out.contains(&named) || out.contains(&format!("lacks +{right}")), "{right}: {out}");
        assert!(out.contains("help: "), "{out}");
        redis.run(&format!("ACL SETUSER tollgate +{right}"));
    }
    redis.run("ACL SETUSER tollgate resetkeys ~other:*");
    let (status, out) = probe(&store);
    assert_eq!(status, 1, "{out}");
    assert!(
        out.contains("may not use the keys ~tg:*") || out.contains("keys of this prefix"),
        "{out}"
    );
}

#[test]
fn rights_that_only_leases_need_are_named_where_a_limit_is_leased() {
    let redis = Redis::start();
    redis.run(&format!("ACL SETUSER {}", documented()));
    let store = on(&redis, ", username: tollgate, password: pw");
    let plain = file(&store);
    let leased = plain.replace(
        "rate: 5/s",
        "rate: 1000/s, algorithm: fixed-window, consistency: {leased: {quiet: 20s}}",
    );
    let run = |file: &str| {
        let (status, out, err) = run(&["check", "--probe", "-"], file);
        (status, format!("{out}{err}"))
    };
    assert_eq!(run(&plain).0, 0, "other limits do not need them");
    let rights = leases_need();
    assert!(rights.len() > 5, "{rights:?}");
    let (status, out) = run(&leased);
    assert_eq!(status, 1, "{out}");
    rights.iter().for_each(|one| assert!(out.contains(&one.to_uppercase()), "{one}: {out}"));
    let all: Vec<_> = rights.iter().map(|right| format!("+{right}")).collect();
    redis.run(&format!("ACL SETUSER tollgate {}", all.join(" ")));
    let (status, out) = run(&leased);
    assert_eq!(status, 0, "the documented rights are enough: {out}");
    for right in rights {
        redis.run(&format!("ACL SETUSER tollgate -{right}"));
        let (status, out) = run(&leased);
        assert_eq!(status, 1, "{right}: {out}");
        assert!(out.contains(&format!("command {}", right.to_uppercase())), "{right}: {out}");
        redis.run(&format!("ACL SETUSER tollgate +{right}"));
    }
    assert_eq!(redis.run("DBSIZE"), ::redis::Value::Int(0), "nothing is left behind");
}

#[test]
fn a_wrong_password_is_named_and_not_repeated() {
    let redis = Redis::start_with(&["--requirepass", "right"]);
    for (fields, says) in [("", "NOAUTH"), (", password: marker-wrong", "credentials")] {
        let (status, out) = probe(&on(&redis, fields));
        assert_eq!(status, 1, "{out}");
        assert!(
            out.contains(says) && out.contains("help: check `username` and `password`"),
            "{out}"
        );
        assert!(!out.contains("marker"), "{out}");
    }
    assert_eq!(probe(&on(&redis, ", password: right")).0, 0);
}

#[test]
fn a_replica_takes_no_counts() {
    let primary = Redis::listen(&[]);
    let replica = Redis::start_with(&["--replicaof", &format!("127.0.0.1 {}", primary.port())]);
    replica.until_says("INFO replication", "master_link_status:up");
    let (status, out) = probe(&on(&replica, ""));
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("SET (READONLY)\nhelp: it is a replica: name the primary"), "{out}");
}

#[test]
fn sentinels_lead_to_the_primary_and_are_not_one() {
    let sentinels = Sentinels::start(5_000);
    let (status, out) = probe(&sentinels.store());
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("mode: standalone"), "{out}");
    let (status, out) = probe(&on(&sentinels.sentinels[0], ""));
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("is it a sentinel?"), "{out}");
    let wrong = sentinels.store().replace("master: store", "master: other");
    let (status, out) = probe(&wrong);
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("no sentinel says where the primary is"), "{out}");
}

#[test]
fn a_cluster_is_named_by_its_nodes() {
    let cluster = Cluster::start(Duration::from_secs(5));
    let (status, out) = probe(&cluster.store());
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("mode: cluster"), "{out}");
    assert!(out.contains("batches: one call decides for all slots of a primary\n"), "{out}");
    cluster.servers[1].run("ACL SETUSER default -eval_ro");
    let (status, out) = probe(&cluster.store());
    let by_slot = format!("batches: one call decides for one slot at {};", cluster.address(1));
    assert!(status == 0 && out.contains(&by_slot), "{out}");
    let user = format!("{} +cluster|slots +asking", documented());
    for (right, named) in
        [("none", ""), ("asking", "ASKING"), ("cluster|slots", "lacks +cluster|slots")]
    {
        for server in &cluster.servers {
            server.run(&format!("ACL SETUSER {user}"));
            if !named.is_empty() {
                server.run(&format!("ACL SETUSER tollgate -{right}"));
            }
        }
        let store = format!("{}, username: tollgate, password: pw", cluster.store());
        let (status, out) = probe(&store);
        assert_eq!(status, i32::from(!named.is_empty()), "{right}: {out}");
        assert!(out.contains(named), "{right}: {out}");
    }
    // Rights are not replicated, so each server may lack different ones.
    for n in 0..3 {
        for server in &cluster.servers {
            server.run(&format!("ACL SETUSER {user}"));
        }
        cluster.servers[n].run("ACL SETUSER tollgate -incrby");
        let store = format!("{}, username: tollgate, password: pw", cluster.store());
        let (status, out) = probe(&store);
        assert_eq!(status, 1, "{n}: {out}");
        assert!(out.contains(&format!("INCRBY at {}", cluster.address(n))), "{n}: {out}");
    }
    // Of three servers one has the slot, and the others redirect to it.
    let alone = (0..3).map(|n| probe(&format!("url: 'redis://{}'", cluster.address(n))));
    let told =
        alone.filter(|(status, out)| *status == 1 && out.contains("name the cluster's nodes"));
    assert!(told.count() >= 2);
}

#[test]
fn a_store_that_is_full_is_not_said_to_lack_rights() {
    let redis = Redis::start_with(&["--maxmemory", "1"]);
    let (status, out) = probe(&on(&redis, ""));
    assert_eq!(status, 1, "{out}");
    let error = "the store refuses the command SET (OOM)\nhelp: docs/operations.md says what";
    assert!(out.contains(error), "{out}");
}

#[test]
fn a_store_that_is_not_there_is_an_error_and_memory_needs_none() {
    for store in ["url: 'redis://127.0.0.1:1/0'", "cluster: ['127.0.0.1:1']"] {
        let file = format!("store: {{redis: {{{store}}}}}\nlimits: [{{name: a, rate: 5/s}}]\n");
        let (status, out, err) = run(&["check", "--probe", "-"], &file);
        assert_eq!(status, 1, "{out}{err}");
        let says = out.contains("-: error: the store cannot be reached") && out.contains("refused");
        assert!(says && out.contains("\nhelp: check that it runs"), "{out}");
        assert_eq!(run(&["check", "-"], &file).0, 0, "only when it is asked for");
    }
    let (status, out, _) = run(&["check", "--probe", "-"], "limits: [{name: a, rate: 5/s}]\n");
    assert_eq!(status, 0);
    assert!(out.contains("store: in the process itself"), "{out}");
}

#[test]
fn a_key_of_tiers_that_holds_no_hash_is_named() {
    let redis = Redis::start();
    redis.run("SET plans pro");
    let file = format!("tiers: {{by: user, redis: plans}}\n{}", file(&on(&redis, "")));
    let (status, out, _) = run(&["check", "--probe", "-"], &file);
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("HGET plans (WRONGTYPE)"), "{out}");
    assert!(out.contains("holds another type than a hash"), "{out}");
}
