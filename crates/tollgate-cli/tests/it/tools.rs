//! Tools of operators: Prometheus runs the alert rules and the queries of the dashboard.

use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tollgate_faults::clock::wait_until;
use tollgate_faults::node::Node;
use tollgate_faults::process::Process;
use tollgate_faults::redis::{Redis, free_port};
use tollgate_faults::temp_dir::TempDir;

const WITHIN: Duration = Duration::from_secs(90);

fn ops(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../ops").join(name)
}

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stderr(Stdio::null()).output().is_ok();
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

#[test]
fn every_alert_fires_and_resolves_in_promtool() {
    if !is_installed("promtool") {
        return;
    }
    for arguments in [["check", "rules", "rules.yml"], ["test", "rules", "rules.test.yml"]] {
        let mut command = Command::new("promtool");
        let output = command.args(arguments).current_dir(ops("prometheus")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let tests = std::fs::read_to_string(ops("prometheus/rules.test.yml")).unwrap();
    let rules = std::fs::read_to_string(ops("prometheus/rules.yml")).unwrap();
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.matches(&format!("alertname: {alert}")).count() >= 3, "{alert} has no test");
    }
}

/// A Prometheus that scrapes nodes.
struct Prometheus {
    address: SocketAddr,
    _folder: TempDir,
    _process: Process,
}

impl Prometheus {
    fn start(nodes: &[&Node]) -> Self {
        let folder = TempDir::new("prometheus");
        let targets: Vec<String> = nodes.iter().map(|node| format!("'{}'", node.admin)).collect();
        let rules = std::fs::read_to_string(ops("prometheus/rules.yml")).unwrap();
        // Alerts wait for a minute or two; in this test they do not.
        let rules = rules.replace("for: 1m", "for: 1s").replace("for: 2m", "for: 1s");
        folder.put("rules.yml", &rules);
        folder.put(
            "prometheus.yml",
            &format!(
                "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [rules.yml]\nscrape_configs: [{{job_name: tollgate, static_configs: [{{targets: [{}]}}]}}]\n",
                targets.join(", ")
            ),
        );
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let mut command = Command::new("prometheus");
        command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]);
        command.arg(format!("--web.listen-address={address}"));
        let process = Process::spawn(&mut command).unwrap();
        Self { address, _folder: folder, _process: process }
    }

    fn get(&self, path: &str) -> Option<Value> {
        let answer = tollgate_faults::http::ask(self.address, path, None).ok()?;
        serde_json::from_str(&answer.body).ok()
    }

    /// The number of series of the expression.
    fn series(&self, expression: &str) -> usize {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = self.get(&format!("/api/v1/query?query={encoded}"));
        answer.and_then(|answer| Some(answer["data"]["result"].as_array()?.len())).unwrap_or(0)
    }
}

impl Prometheus {
    /// The firing alerts with this name: their severity and instance.
    fn firing(&self, name: &str) -> Vec<(String, String)> {
        let answer = self.get("/api/v1/alerts").unwrap_or_default();
        let alerts = answer["data"]["alerts"].as_array().cloned().unwrap_or_default();
        let label = |alert: &Value, name: &str| {
            alert["labels"][name].as_str().unwrap_or_default().to_owned()
        };
        let fires =
            |alert: &&Value| alert["state"] == "firing" && alert["labels"]["alertname"] == name;
        let firing = alerts.iter().filter(fires);
        firing.map(|alert| (label(alert, "severity"), label(alert, "instance"))).collect()
    }
}

/// The expressions of the dashboard, with its variables replaced.
fn panels() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(ops("grafana/tollgate.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut panels = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let expression = expression.replace("$job", ".*").replace("$instance", ".*");
            let expression = expression.replace("$__rate_interval", "10s");
            panels.push((panel["title"].as_str().unwrap().to_owned(), expression));
        }
    }
    panels
}

/// One alert of each severity, with the rules of the package but without their waits. No other
/// alert fires before or after.
#[test]
fn an_alert_of_each_severity_fires_and_resolves_on_a_live_pair() {
    if !is_installed("prometheus") {
        return;
    }
    let mut redis = Redis::start();
    let limits =
        "limits: [{name: per-user, key: [user], rate: 1000/s, on_store_failure: closed}]\n";
    let policy = format!("store: {{redis: {{url: '{}'}}}}\n{limits}", redis.url());
    let program = Path::new(env!("CARGO_BIN_EXE_tollgate"));
    let pair = [Node::start(program, &policy), Node::start(program, &policy)];
    let prometheus = Prometheus::start(&[&pair[0], &pair[1]]);
    let both =
        "sum(tollgate_decisions_total{outcome=\"admitted\"}) > 1 and sum(tollgate_ready) == 2";
    let is_up = wait_until(WITHIN, || {
        pair.iter().for_each(|node| drop(node.check("a", "/")));
        prometheus.series(both) == 1
    });
    assert!(is_up);
    let (down, bad) = ("TollgateStoreDown", "TollgatePolicyReloadFailed");
    assert_eq!((prometheus.firing(down).len(), prometheus.firing(bad).len()), (0, 0));
    // Both nodes lose the store: critical.
    redis.kill();
    let fires = wait_until(WITHIN, || {
        pair.iter().for_each(|node| drop(node.check("a", "/")));
        prometheus.firing(down).len() == 2
    });
    assert!(fires, "{:?}", prometheus.firing(down));
    assert!(prometheus.firing(down).iter().all(|(severity, _)| severity == "critical"));
    redis.restart();
    let resolves = wait_until(WITHIN, || {
        pair.iter().for_each(|node| drop(node.check("a", "/")));
        prometheus.firing(down).is_empty()
    });
    assert!(resolves, "{:?}", prometheus.firing(down));
    // One node gets a bad file: a warning that names it.
    pair[1].put("limits: nonsense");
    assert!(wait_until(WITHIN, || !prometheus.firing(bad).is_empty()));
    let expected = [("warning".to_owned(), pair[1].admin.to_string())];
    assert_eq!(prometheus.firing(bad), expected);
    pair[1].put(&policy);
    assert!(wait_until(WITHIN, || prometheus.firing(bad).is_empty()));
}

#[test]
fn every_panel_has_data_from_a_live_pair() {
    if !is_installed("prometheus") {
        return;
    }
    let redis = Redis::start();
    let policy = format!(
        "listen: {{http: '127.0.0.1:0', admin: '127.0.0.1:0', gateway: '127.0.0.1:0'}}\nupstream: http://127.0.0.1:{}\nstore: {{redis: {{url: '{}'}}}}\n\
         classes: [{{name: critical, match: {{path: /pay}}}}, {{name: normal, default: true}}]\nshed: {{fleet: {{capacity: 100}}}}\n\
         tiers: {{default: free}}\nlimits: [{{name: per-user, key: [user], rate: 2/s, tiers: {{pro: 20/s}}, candidate: {{rate: 1/s}}}}]\n",
        free_port(),
        redis.url()
    );
    let program = Path::new(env!("CARGO_BIN_EXE_tollgate"));
    let pair = [Node::start(program, &policy), Node::start(program, &policy)];
    let prometheus = Prometheus::start(&[&pair[0], &pair[1]]);
    let mut missing = panels();
    assert!(missing.len() > 25);
    let gateway = |node: &Node| {
        let address = |line: &String| line.strip_prefix("listening gateway ")?.parse().ok();
        node.log().iter().find_map(address).expect("the gateway listens")
    };
    let has_data = wait_until(WITHIN, || {
        for node in &pair {
            drop(node.check("a", "/"));
            // There is no upstream. The gateway decides before it notices.
            drop(tollgate_faults::http::ask(gateway(node), "/", None));
        }
        missing.retain(|(_, expression)| prometheus.series(expression) == 0);
        missing.is_empty()
    });
    assert!(has_data, "no data for {missing:#?}");
}

#[test]
fn the_policies_of_the_packages_pass_the_check() {
    for name in [
        "deb/tollgate.yaml",
        "docker/tollgate.yaml",
        "docker/nodes.yaml",
        "kubernetes/tollgate.yaml",
    ] {
        let file = ops(name);
        let (status, out, err) = crate::run(&["check", file.to_str().unwrap()], "");
        assert_eq!(status, 0, "{name}: {out}{err}");
    }
}

#[test]
fn the_image_runs_as_nobody_special_and_says_how_it_is() {
    let text = std::fs::read_to_string(ops("docker/Dockerfile")).unwrap();
    let last = &text[text.rfind("\nFROM ").unwrap()..];
    assert_eq!(text.matches("\nFROM ").count(), 2, "two stages: build and run");
    assert!(last.contains("\nUSER 10001:10001\n") && !last.contains("USER root"));
    assert!(last.contains("HEALTHCHECK") && last.contains("\"admin\", \"status\""));
    assert!(text.contains("--locked --profile dist"));
    let ignored = std::fs::read_to_string(ops("docker/Dockerfile.dockerignore")).unwrap();
    let root = ops("..");
    for name in ignored.lines().filter_map(|line| line.strip_prefix('!')) {
        assert!(root.join(name).exists(), "{name} is not in the build context");
    }
    // Every local file in the image and the compose file exists.
    let compose = std::fs::read_to_string(ops("docker/compose.yaml")).unwrap();
    let mounts = compose.split(['"', ' ', '\n']).filter_map(|word| word.split_once(":/"));
    let local: Vec<&str> =
        mounts.map(|(from, _)| from).filter(|from| from.starts_with('.')).collect();
    assert!(local.len() >= 6, "{local:?}");
    for name in local {
        assert!(ops("docker").join(name).exists(), "{name} is mounted and not there");
    }
    for line in text.lines().filter(|line| line.contains("ops/docker/tollgate.yaml")) {
        assert!(ops("docker/tollgate.yaml").exists(), "{line}");
    }
}
