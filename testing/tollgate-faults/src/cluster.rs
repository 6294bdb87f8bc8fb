//! A Redis Cluster of six servers, three of them replicas.

use crate::clock::wait_until;
use crate::redis::Redis;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Six servers: the first three begin as primaries.
#[derive(Debug)]
pub struct Cluster {
    /// The servers, each with a port.
    pub servers: Vec<Redis>,
}

impl Cluster {
    /// Starts a cluster with this node timeout.
    pub fn start(node_timeout: Duration) -> Self {
        let timeout = node_timeout.as_millis().to_string();
        let arguments = [
            ("--cluster-enabled", "yes"),
            ("--cluster-node-timeout", &timeout),
            ("--cluster-replica-validity-factor", "0"),
            ("--repl-diskless-sync-delay", "0"),
            ("--cluster-require-full-coverage", "no"),
        ];
        let arguments: Vec<_> =
            arguments.iter().flat_map(|(name, value)| [*name, *value]).collect();
        let servers: Vec<_> = (0..6).map(|_| Redis::listen(&arguments)).collect();
        let cluster = Self { servers };
        let nodes: Vec<_> = (0..6).map(|n| cluster.address(n)).collect();
        let mut create = vec!["create"];
        create.extend(nodes.iter().map(String::as_str));
        create.extend(["--cluster-replicas", "1", "--cluster-yes"]);
        manage(&create);
        for server in &cluster.servers {
            server.until_says("CLUSTER INFO", "cluster_state:ok");
        }
        for replica in &cluster.servers[3..] {
            replica.until_says("INFO replication", "master_link_status:up");
        }
        cluster
    }

    /// The address of a server.
    pub fn address(&self, server: usize) -> String {
        format!("127.0.0.1:{}", self.servers[server].port())
    }

    /// The value of `store.redis` for a node.
    pub fn store(&self) -> String {
        // Several servers, since a scenario may kill the first; nodes find the others through
        // these.
        format!("cluster: ['{}', '{}', '{}']", self.address(0), self.address(1), self.address(5))
    }

    /// The cluster's id of a server.
    pub fn id(&self, server: usize) -> String {
        let said = self.servers[server].run("CLUSTER MYID");
        redis::from_redis_value(said).expect("a server knows its name")
    }

    /// The index of a primary's replica.
    pub fn replica_of(&self, primary: usize) -> usize {
        let port = self.servers[primary].port();
        let follows = |place: &usize| {
            let said = format!("{:?}", self.servers[*place].run("INFO replication"));
            said.contains(&format!("master_port:{port}"))
        };
        (3..6).find(follows).expect("every primary has a replica")
    }

    /// Moves slots from one server to another with `redis-cli`, and waits until all servers agree.
    pub fn reshard(&self, from: usize, to: usize, slots: u32) {
        let (address, slots) = (self.address(0), slots.to_string());
        let (from, to) = (self.id(from), self.id(to));
        let agreed = || try_manage(&["check", &address]).status.success();
        assert!(
            wait_until(Duration::from_secs(60), agreed),
            "the servers did not agree in a minute"
        );
        let arguments =
            ["reshard", &address, "--cluster-from", &from, "--cluster-to", &to, "--cluster-slots"];
        manage(&[&arguments[..], &[&slots, "--cluster-yes"]].concat());
    }
}

fn manage(arguments: &[&str]) {
    let output = try_manage(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn try_manage(arguments: &[&str]) -> Output {
    let mut command = Command::new("redis-cli");
    command.arg("--cluster").args(arguments).stdin(Stdio::null());
    command.output().expect("redis-cli comes with redis-server")
}
