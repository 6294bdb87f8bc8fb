//! A primary with two replicas, and three sentinels.

use crate::redis::Redis;

/// Three servers and three sentinels.
#[derive(Debug)]
pub struct Sentinels {
    /// The servers; the first one starts as the primary.
    pub servers: Vec<Redis>,
    /// The sentinels.
    pub sentinels: Vec<Redis>,
}

impl Sentinels {
    /// Starts all processes, and waits until they know one another.
    pub fn start(down_after_ms: u32) -> Self {
        let primary = Redis::listen(&[]);
        let of_primary = format!("127.0.0.1 {}", primary.port());
        let replica =
            || Redis::listen(&["--replicaof", &of_primary, "--repl-diskless-sync-delay", "0"]);
        let servers = vec![replica(), replica()];
        for server in &servers {
            server.until_says("INFO replication", "master_link_status:up");
        }
        let sentinels: Vec<_> = (0..3).map(|_| Redis::listen(&["--sentinel"])).collect();
        for sentinel in &sentinels {
            sentinel.run(&format!("SENTINEL MONITOR store {of_primary} 2"));
            sentinel.run(&format!("SENTINEL SET store down-after-milliseconds {down_after_ms}"));
            sentinel.run("SENTINEL SET store failover-timeout 3000");
        }
        for sentinel in &sentinels {
            sentinel.until_says("INFO sentinel", "slaves=2,sentinels=3");
        }
        let servers = std::iter::once(primary).chain(servers).collect();
        Self { servers, sentinels }
    }

    /// The value of `store.redis` for a node.
    pub fn store(&self) -> String {
        let nodes: Vec<_> =
            self.sentinels.iter().map(|one| format!("'127.0.0.1:{}'", one.port())).collect();
        format!("sentinel: {{master: store, nodes: [{}]}}", nodes.join(", "))
    }
}
