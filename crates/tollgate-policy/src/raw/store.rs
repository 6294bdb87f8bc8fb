//! `store` and `on_store_failure`.

use super::forms::SecretEnv;
use super::{DurationText, List, RateText, SecretText, SizeText, Text, either, raw, words};

either! {
    /// `store`.
    Store {
        /// `memory`.
        Word(StoreWord),
        /// The store with settings.
        Form(StoreForm),
    }
}

words! {
    /// `store` in one word.
    StoreWord {
        /// In this process; the default.
        Memory = "memory",
        /// In Redis, shared; needs settings, so the word alone is refused.
        Redis = "redis",
    }
}

raw! {
    /// `store` with settings: `memory` or `redis`.
    StoreForm {
        /// Counts in this process.
        memory: Memory,
        /// Counts in Redis or Valkey.
        redis: Redis,
    }
}

raw! {
    /// The memory store.
    Memory {
        /// The most memory for counts.
        max_bytes: SizeText,
    }
}

raw! {
    /// The redis store: exactly one of `url`, `sentinel` and `cluster`.
    Redis {
        /// redis://, rediss:// or unix://.
        url: SecretText,
        /// The primary, found through Sentinels.
        sentinel: Sentinel,
        /// The nodes of a cluster, host:port.
        cluster: List<Text>,
        /// The user name.
        username: Text,
        /// The password.
        password: Password,
        /// The secret that hashes keys; by default the password.
        secret: Password,
        /// Files for TLS; {} for TLS with the system's certificate authorities.
        tls: Tls,
        /// The prefix of every key.
        prefix: Text,
        /// The clock that counts.
        time: TimeSource,
        /// The deadline of one call.
        deadline: DurationText,
        /// Connections to each node.
        connections: u64,
        /// The most requests in flight; further requests fail at once.
        in_flight: u64,
        /// Whether replicas may answer peeks and inspections; their data may be slightly old.
        replica_reads: bool,
        /// The circuit breaker.
        breaker: Breaker,
        /// The cache of refusals on this node.
        deny_cache: DenyCache,
    }
}

raw! {
    /// How Sentinels find the primary.
    Sentinel {
        /// The name of the primary.
        master: Text,
        /// The Sentinels, host:port.
        nodes: List<Text>,
        /// The user name for the Sentinels.
        username: Text,
        /// The password for the Sentinels.
        password: Password,
    }
}

either! {
    /// A password or token.
    Password {
        /// The secret itself.
        Text(SecretText),
        /// The name of an environment variable.
        Env(SecretEnv),
    }
}

raw! {
    /// Files for TLS.
    Tls {
        /// The certificate authorities to trust, PEM.
        ca: Text,
        /// The client's certificate, PEM.
        cert: Text,
        /// The client's key, PEM.
        key: Text,
    }
}

words! {
    /// The clock that counts.
    TimeSource {
        /// The clock of the Redis server, read once per call; the default.
        Server = "server",
        /// The clock of the node, for services that refuse TIME in scripts.
        Caller = "caller",
    }
}

raw! {
    /// The circuit breaker.
    Breaker {
        /// Failures in a row that open the circuit breaker.
        errors: u64,
        /// The interval of probes while the circuit breaker is open.
        probe: DurationText,
    }
}

raw! {
    /// The cache of refusals on this node.
    DenyCache {
        /// The number of entries; 0 turns the cache off.
        entries: u64,
        /// The longest time for which a refusal is cached.
        max_age: DurationText,
    }
}

either! {
    /// `on_store_failure`.
    OnStoreFailure {
        /// `open`, `closed` or `local`.
        Word(FailureWord),
        /// `local` with the number of nodes, or with the rate of each.
        Form(FailureForm),
    }
}

words! {
    /// `on_store_failure` in one word.
    FailureWord {
        /// Admit; the default.
        Open = "open",
        /// Refuse.
        Closed = "closed",
        /// Enforce the limit in memory, as the only node.
        Local = "local",
    }
}

raw! {
    /// `on_store_failure` with the number of nodes, or with the rate of each.
    FailureForm {
        /// Enforce this node's share, or the rate, in memory.
        #[cfg_attr(test, schemars(required))]
        local: FailureLocal,
    }
}

raw! {
    /// This node's share, or a rate for each node.
    FailureLocal {
        /// The number of nodes that share the limit.
        nodes: u64,
        /// The rate of each node; for concurrency, a number of slots.
        rate: RateText,
    }
}
