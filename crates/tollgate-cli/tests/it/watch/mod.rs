//! Commands to watch a node: `tollgate top`, `tollgate tail` and the dashboard.

mod dashboard;
mod tail;
mod top;

use std::path::Path;
use std::process::Command;
use tollgate_faults::node::Node;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tollgate");
const TOKEN: &str = "a-long-token";

const POLICY: &str = "
admin: {token: a-long-token, audit: {file: audit.jsonl}}
limits:
  - {name: per-user, key: [user], rate: 3/d, algorithm: fixed-window, show_keys: true}
  - {name: hidden, key: [user], rate: 1000/d}
";

fn start(policy: &str) -> Node {
    Node::start(Path::new(PROGRAM), policy)
}

/// The command with these arguments, the node and its token.
fn command(node: &Node, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).args(["--url", &format!("http://{}", node.admin)]);
    command.env("TOLLGATE_ADMIN_TOKEN", TOKEN);
    command
}

/// Standard output of a command that succeeds.
fn output(node: &Node, arguments: &[&str]) -> String {
    let output = command(node, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Other tests run these commands; this test checks their spelling.
#[test]
fn commands_of_the_page_are_understood() {
    let page = include_str!("../../../../../docs/dashboard.md");
    let commands = page.lines().filter_map(|line| line.strip_prefix("$ tollgate "));
    let commands: Vec<&str> = commands.collect();
    assert_eq!(commands.len(), 2);
    for command in commands {
        let words = command.split(' ').chain(["--help"]);
        let status = Command::new(PROGRAM).args(words).output().unwrap().status;
        assert!(status.success(), "{command}");
    }
}
