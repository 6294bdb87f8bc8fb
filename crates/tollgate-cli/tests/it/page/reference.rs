//! Runs the commands of the reference pages as printed, except for their ports.

use crate::serve::process::{Folder, Process};
use std::path::Path;
use std::process::Command;

const PAGES: [&str; 3] = [
    include_str!("../../../../../docs/cli.md"),
    include_str!("../../../../../docs/http-api.md"),
    include_str!("../../../../../docs/metrics.md"),
];

const POLICY: &str = "
listen: {http: 127.0.0.1:0, admin: 127.0.0.1:0}
admin: {token: a-token-of-some-length}
usage: {file: usage.jsonl, every: 1s}
limits:
  - {name: per-address, key: [ip], rate: 100/min}
  - {name: per-user, key: [user], rate: 100/min}
";

#[test]
fn commands_of_the_reference_succeed() {
    let folder = Folder::with("pages", POLICY);
    let mut process = Process::start(&folder.0, &["serve"], &[]);
    let (http, admin) = (process.address("http"), process.address("admin"));
    let programs = Path::new(env!("CARGO_BIN_EXE_tollgate")).parent().unwrap().display();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let lines = PAGES.iter().flat_map(|page| page.lines());
    let mut count = 0;
    for command in lines.filter_map(|line| line.strip_prefix("$ ")) {
        let command = command.replace("127.0.0.1:8081", &http).replace("127.0.0.1:8090", &admin);
        let command = command.replace("curl ", "curl --fail ");
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(&folder.0)
            .envs([("PATH", &*path), ("TOKEN", "a-token-of-some-length")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        count += 1;
    }
    assert_eq!(count, 6);
}
