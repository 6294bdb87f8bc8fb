//! The files and the curl call of `docs/envoy.md` for users of envoyproxy/ratelimit.

use super::*;
use std::process::Command;

fn blocks(kind: &str) -> Vec<&'static str> {
    let page = include_str!("../../../../../docs/envoy.md");
    let blocks = page.split(kind).skip(1);
    blocks.map(|block| block.trim_start_matches('\n').split("```").next().unwrap()).collect()
}

#[test]
fn the_page_for_those_who_come_from_ratelimit_holds() {
    let yaml = blocks("```yaml");
    let file = yaml.iter().find(|block| block.starts_with("domain: mongo_cps")).unwrap();
    let policy = yaml.iter().find(|block| block.contains("ratelimit/*.yaml")).unwrap();
    let rest = policy.lines().filter(|line| !line.starts_with("listen:")).collect::<Vec<_>>();
    // Here the folder is that of the policy.
    let rest = rest.join("\n").replace("ratelimit/*.yaml", "mongo*.yaml");
    let node = Node::start(&rest, &[("mongo.yaml", file)]);
    let console = blocks("```console");
    let (_, curl) = console.iter().find_map(|block| block.split_once("$ curl")).unwrap();
    let (curl, expected) = curl.split_once('\n').unwrap();
    assert!(curl.contains("127.0.0.1:8081"), "{curl}");
    let curl = curl.replace("127.0.0.1:8081", &node.address().to_string());
    let output = Command::new("sh").args(["-c", &format!("curl{curl}")]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{curl}");
    let users = || descriptor(&[("database", "users")]);
    assert_eq!(left(&node.ask("mongo_cps", vec![users()])), [(true, 499)]);
}
