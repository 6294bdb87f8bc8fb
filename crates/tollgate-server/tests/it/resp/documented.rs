//! The conversations in the documentation, run as printed.

use super::RespServer;
use std::process::Command;

/// Runs every `resp` block of a page: `> command` and its reply on one line. Words in angle
/// brackets stand for any word; later commands can use the value of `<id>`.
fn run(page: &str, served: &RespServer) -> usize {
    let mut lines = 0;
    for block in page.split("```resp\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let mut client = served.client();
        let mut id = String::new();
        let mut answer = String::new();
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("> ") {
                answer = client.line(&command.replace("<id>", &id));
                lines += 1;
                continue;
            }
            let expected: Vec<&str> = line.split(' ').collect();
            let actual: Vec<&str> = answer.split(' ').collect();
            assert_eq!(expected.len(), actual.len(), "{line} is {answer}");
            for (expected, actual) in expected.into_iter().zip(actual) {
                match expected {
                    same if same == actual => {}
                    "<id>" => id = actual.into(),
                    any if any.starts_with('<') => {
                        assert!(actual.parse::<u64>().is_ok(), "{answer}")
                    }
                    _ => panic!("{line} is {answer}"),
                }
            }
        }
    }
    lines
}

/// The first policy of the page.
fn file(page: &str) -> String {
    let yaml = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    yaml.lines().filter(|line| !line.starts_with("listen:")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_page_about_redis_cell_holds() {
    let page = include_str!("../../../../../docs/redis-cell.md");
    let served = RespServer::new(&file(page));
    assert!(run(page, &served) >= 15);
}

/// The content of a block of this kind, with the node's port.
fn block(page: &str, kind: &str, served: &RespServer) -> String {
    let block = page.split(&format!("```{kind}\n")).nth(1).unwrap().split("```").next().unwrap();
    assert!(block.contains("6380"), "{block}");
    block.replace("6380", &served.address().port().to_string())
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Each client starts with a new node, like a reader of the page.
#[test]
fn the_programs_on_the_page_run() {
    let page = include_str!("../../../../../docs/redis-cell.md");
    let served = || RespServer::new(&file(page));
    let node = served();
    let console = block(page, "console", &node);
    let (first, answer) = console.split_once("$ redis-cli").unwrap();
    assert!(first.starts_with("$ tollgate serve --config tollgate.yaml &"), "{first}");
    let (arguments, answer) = answer.split_once('\n').unwrap();
    let mut cli = Command::new("redis-cli");
    // Without a terminal, redis-cli would leave out the numbers in front.
    cli.arg("--no-raw").args(arguments.split_whitespace());
    assert_eq!(said(&mut cli), answer);
    let node = served();
    let python = block(page, "python", &node);
    assert_eq!(said(Command::new("python3").args(["-c", &python])), "0 15\n");
    let node = served();
    let js = block(page, "js", &node);
    let root = said(Command::new("npm").args(["root", "--global"]));
    let mut program = Command::new("node");
    program.env("NODE_PATH", root.trim()).args(["-e", &js]);
    assert_eq!(said(&mut program), "0 15\n");
}
