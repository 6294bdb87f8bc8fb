//! Real clients: redis-cli, redis-py, ioredis and redis-rs, against a node with a password.

use super::RespServer;
use std::path::Path;
use std::process::Command;

const FILE: &str = "resp: {password: hunter2}
limits: [{name: per-user, key: [user], rate: 3/h, algorithm: gcra}]";

/// The standard output of a program that must succeed.
fn run(command: &mut Command, package: &str) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{error}: install {package}, or run the tests with `cargo xtask test`")
    });
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {out}{err}");
    out.into_owned()
}

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

#[test]
fn redis_cli() {
    let served = RespServer::new(FILE);
    let port = served.address().port().to_string();
    let cli = |words: &[&str]| {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &port, "--no-auth-warning", "-a", "hunter2"]).args(words);
        run(&mut command, "Debian's redis-tools")
    };
    assert_eq!(cli(&["CL.THROTTLE", "cli", "15", "30", "60"]), "0\n16\n15\n-1\n2\n");
    assert_eq!(cli(&["-3", "CL.THROTTLE", "cli", "15", "30", "60", "0"]), "0\n16\n15\n-1\n2\n");
    assert!(cli(&["-3", "HELLO"]).contains("proto 3"));
    assert!(cli(&["COMMAND", "DOCS", "tg.check"]).contains("Checks a limit of the policy"));
    assert!(cli(&["INFO"]).contains("tollgate_version:"));
    let wrong = run(
        Command::new("redis-cli").args(["-p", &port, "CL.THROTTLE", "cli", "15", "30", "60"]),
        "Debian's redis-tools",
    );
    assert!(wrong.starts_with("NOAUTH"), "{wrong}");
    // Writes as many commands as possible before it reads a reply.
    let mut pipe = Command::new("sh");
    pipe.arg("-c").arg(format!(
        "for i in $(seq 5000); do echo CL.THROTTLE pipe-$i 15 30 60; done | \
         redis-cli -p {port} --no-auth-warning -a hunter2 --pipe"
    ));
    assert!(run(&mut pipe, "Debian's redis-tools").contains("errors: 0, replies: 5000"));
}

#[test]
fn redis_py() {
    let served = RespServer::new(FILE);
    let mut python = Command::new("python3");
    python.arg(script("redis_py.py")).arg(served.address().port().to_string());
    assert_eq!(run(&mut python, "the Python package redis"), "ok\n");
}

#[test]
fn ioredis() {
    let served = RespServer::new(FILE);
    let root = run(Command::new("npm").args(["root", "--global"]), "Debian's npm");
    let mut node = Command::new("node");
    node.env("NODE_PATH", root.trim());
    node.arg(script("ioredis.js")).arg(served.address().port().to_string());
    assert_eq!(run(&mut node, "the npm package ioredis"), "ok\n");
}

#[test]
fn redis_rs() {
    let served = RespServer::new(FILE);
    for protocol in ["", "?protocol=resp3"] {
        let url = format!("redis://:hunter2@{}/{protocol}", served.address());
        let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
        let key = format!("rs{protocol}");
        let throttle = |quantity: u64| {
            let mut command = redis::cmd("CL.THROTTLE");
            command.arg(&key).arg(15).arg(30).arg(3600).arg(quantity);
            command
        };
        let answer: (i64, i64, i64, i64, i64) = throttle(1).query(&mut connection).unwrap();
        assert_eq!(answer, (0, 16, 15, -1, 120));
        let mut pipeline = redis::pipe();
        for _ in 0..32 {
            pipeline.add_command(throttle(1));
        }
        let answers: Vec<Vec<i64>> = pipeline.query(&mut connection).unwrap();
        let limited: Vec<i64> = answers.iter().map(|answer| answer[0]).collect();
        assert_eq!(limited, [vec![0; 15], vec![1; 17]].concat());
        let error = redis::cmd("CL.THROTTLE").query::<()>(&mut connection).unwrap_err();
        assert!(error.to_string().contains("Usage: cl.throttle"), "{error}");
    }
    let url = format!("redis://:nope@{}/", served.address());
    assert!(redis::Client::open(url).unwrap().get_connection().is_err());
}
