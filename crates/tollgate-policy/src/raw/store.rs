//! `store` and `on_store_failure`.

use super::forms::SecretEnv;
use super::{DurationText, List, RateText, SecretText, SizeText, Text, either, raw, words};

either! {
    /// `store`.
    Store {
        /// `memory`.
        Word(StoreWord),
        /// With settings.
        Form(StoreForm),
    }
}

words! {
    /// `store` in one word.
    StoreWord {
        /// This process only; the default.
        Memory = "memory",
        /// Shared; needs an address, so the word alone is refused.
        Redis = "redis",
    }
}

raw! {
    /// `store` with settings: one of the two.
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
        /// How much it may use.
        max_bytes: SizeText,
    }
}

raw! {
    /// The redis store: exactly one of `url`, `sentinel` and `cluster`.
    Redis {
        /// redis://, rediss:// or unix://.
        url: SecretText,
        /// Found through Sentinels.
        sentinel: Sentinel,
        /// Nodes of a cluster, host:port.
        cluster: List<Text>,
        /// The user to log in as.
        username: Text,
        /// The password.
        password: Password,
        /// What keys are hashed with, in place of the password.
        secret: Password,
        /// TLS with its files; {} for TLS with the system's authorities.
        tls: Tls,
        /// What every key starts with.
        prefix: Text,
        /// Whose clock counts.
        time: TimeSource,
        /// How long one call may take.
        deadline: DurationText,
        /// Connections to each node.
        connections: u64,
        /// Requests under way at once; more fail at once.
        in_flight: u64,
        /// Whether replicas may answer peeks and inspections, with what they knew a moment ago.
        replica_reads: bool,
        /// When to stop asking a store that fails.
        breaker: Breaker,
        /// Refusals remembered on this node.
        deny_cache: DenyCache,
    }
}

raw! {
    /// How the primary is found.
    Sentinel {
        /// The name of the primary.
        master: Text,
        /// The Sentinels, host:port.
        nodes: List<Text>,
        /// The user that the Sentinels know.
        username: Text,
        /// The Sentinels' own password.
        password: Password,
    }
}

either! {
    /// A password or token.
    Password {
        /// As it is.
        Text(SecretText),
        /// From the environment.
        Env(SecretEnv),
    }
}

raw! {
    /// Files for TLS.
    Tls {
        /// The authorities to trust, PEM.
        ca: Text,
        /// The client's certificate, PEM.
        cert: Text,
        /// The client's key, PEM.
        key: Text,
    }
}

words! {
    /// Whose clock counts.
    TimeSource {
        /// The server's, read once per call; the default.
        Server = "server",
        /// The caller's, where the service refuses TIME in scripts.
        Caller = "caller",
    }
}

raw! {
    /// When to stop asking a store that fails.
    Breaker {
        /// Failures in a row that open it.
        errors: u64,
        /// How often an open breaker tries again.
        probe: DurationText,
    }
}

raw! {
    /// Refusals remembered on this node.
    DenyCache {
        /// How many; 0 turns it off.
        entries: u64,
        /// How long at most.
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
        /// Enforce in memory, as the only node.
        Local = "local",
    }
}

raw! {
    /// `on_store_failure` with the number of nodes, or with the rate of each.
    FailureForm {
        /// Enforce this node's share, or the rate, in memory.
        #[schemars(required)]
        local: FailureLocal,
    }
}

raw! {
    /// This node's share, or a rate for each node.
    FailureLocal {
        /// How many nodes share the limit.
        nodes: u64,
        /// How much each node admits per how long; a bare number of slots for `concurrency`.
        rate: RateText,
    }
}
