//! `tollgate check --probe` on a redis-server of the test's own.

use super::run;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Redis {
    child: Child,
    folder: PathBuf,
}

impl Redis {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let process = std::process::id();
        let folder = std::env::temp_dir().join(format!("tollgate-probe-{process}-{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--unixsocket", "redis.sock"])
            .args(arguments)
            .current_dir(&folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("Debian's package redis-server");
        let redis = Self { child, folder };
        while !redis.folder.join("redis.sock").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        redis
    }

    /// A file whose store it is, with more fields.
    fn file(&self, fields: &str) -> String {
        let socket = self.folder.join("redis.sock");
        let url = format!("unix://{}", socket.display());
        format!(
            "store: {{redis: {{url: '{url}', deadline: 30s, {fields}}}}}\nlimits: [{{name: a, rate: 5/s}}]\n"
        )
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn it_says_what_the_store_is() {
    let redis = Redis::start("well", &[]);
    let (status, out, err) = run(&["check", "--probe", "-"], &redis.file(""));
    assert_eq!(status, 0, "{out}{err}");
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
    let (_, out, _) = run(&["check", "--probe", "--format", "json", "-"], &redis.file(""));
    let rows: Value = serde_json::from_str(&out).unwrap();
    let store = rows.as_array().unwrap().iter().find(|row| row["severity"] == "info").unwrap();
    assert_eq!(store["store"]["mode"], "standalone");
    assert!(store["store"]["clock_ahead_us"].as_i64().unwrap().abs() < 1_000_000, "{store}");
}

#[test]
fn a_store_that_forgets_is_warned_of_and_one_that_refuses_is_an_error() {
    let redis = Redis::start("evicts", &["--maxmemory-policy", "allkeys-lru"]);
    let (status, out, _) = run(&["check", "--probe", "-"], &redis.file(""));
    assert_eq!(status, 0, "{out}");
    assert!(
        out.contains("warning: the store forgets counts") && out.contains("allkeys-lru"),
        "{out}"
    );
    assert_eq!(run(&["check", "--probe", "--deny", "warnings", "-"], &redis.file("")).0, 1);
    let user =
        ["--user", "few", "on", ">pw", "~tg:*", "-@all", "+eval", "+evalsha", "+time", "+get"];
    let redis = Redis::start("refuses", &user);
    let (status, out, _) =
        run(&["check", "--probe", "-"], &redis.file("username: few, password: pw"));
    assert_eq!(status, 1, "{out}");
    for name in ["INCRBY", "MGET", "SET", "UNLINK"] {
        assert!(out.contains(&format!("error: the store refuses the command {name}\n")), "{out}");
    }
    assert!(!out.contains("command GET") && !out.contains("pw"), "{out}");
}

#[test]
fn a_store_that_cannot_write_is_not_said_to_lack_rights() {
    for (name, arguments, code) in [
        ("full", ["--maxmemory", "1"].as_slice(), "OOM"),
        ("replica", ["--replicaof", "127.0.0.1", "1"].as_slice(), "READONLY"),
    ] {
        let redis = Redis::start(name, arguments);
        let (status, out, _) = run(&["check", "--probe", "-"], &redis.file(""));
        assert_eq!(status, 1, "{out}");
        let error = format!(
            "the store refuses the command SET ({code})\nhelp: docs/operations.md says what"
        );
        assert!(out.contains(&error), "{out}");
    }
}

#[test]
fn a_store_that_is_not_there_is_an_error_and_memory_needs_none() {
    let file = "store: {redis: {url: 'redis://127.0.0.1:1/0'}}\nlimits: [{name: a, rate: 5/s}]\n";
    let (status, out, err) = run(&["check", "--probe", "-"], file);
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("-: error: ") && out.contains("\nhelp: check that it runs"), "{out}");
    assert!(out.contains("refused"), "{out}");
    assert_eq!(run(&["check", "-"], file).0, 0, "only when it is asked for");
    let (status, out, _) = run(&["check", "--probe", "-"], "limits: [{name: a, rate: 5/s}]\n");
    assert_eq!(status, 0);
    assert!(out.contains("store: in the process itself"), "{out}");
}
