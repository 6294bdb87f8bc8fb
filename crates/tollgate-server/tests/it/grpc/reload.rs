//! Ratelimit files that change while requests are decided.

use super::*;

fn file(requests: u32) -> String {
    format!(
        "{{domain: edge, descriptors: [{{key: user, rate_limit: {{unit: year, requests_per_unit: {requests}}}}}]}}"
    )
}

fn shown(node: &Node) -> u32 {
    let response = node.ask("edge", vec![hits(user("ann"), 0)]);
    response.statuses[0].current_limit.clone().map_or(0, |limit| limit.requests_per_unit)
}

fn wait_for(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_changed_file_is_in_force_and_a_bad_one_is_not() {
    let node = Node::start("envoy: {configs: '*.yml'}", &[("edge.yml", &file(10))]);
    assert_eq!(left(&node.ask("edge", vec![hits(user("ann"), 4)])), [(true, 6)]);
    fs::write(node.folder.join("edge.yml"), file(20)).unwrap();
    wait_for(|| shown(&node) == 20);
    assert_eq!(left(&node.ask("edge", vec![user("ann")])), [(true, 15)], "counts stay");
    fs::write(node.folder.join("worse.yml"), "domain: edge\n").unwrap();
    let health = || node.running.node().health.problems();
    wait_for(|| format!("{:?}", health()).contains("worse.yml:1:9: error[TG070]"));
    assert_eq!(shown(&node), 20, "the last good files stay in force");
    fs::remove_file(node.folder.join("worse.yml")).unwrap();
    fs::write(
        node.folder.join("more.yml"),
        "{domain: more, descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1}}]}",
    )
    .unwrap();
    wait_for(|| node.ask("more", vec![hits(user("ann"), 0)]).statuses[0].current_limit.is_some());
}
