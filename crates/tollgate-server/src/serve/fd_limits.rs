//! How many connections the system has descriptors for.

#[cfg(test)]
mod tests;

use crate::net::Limits;

/// Connections of the admin API at once: enough for whoever scrapes, and few enough to leave the
/// rest to traffic.
const ADMIN_MAX: u64 = 256;
/// What is not a connection: listeners, files, and a margin for what is accepted only to be told to
/// wait.
const RESERVED_FDS: u64 = 96;
/// What a thread needs to wait for its connections.
const FDS_PER_THREAD: u64 = 4;

/// The limits of each of `fronts` front ends for traffic and of the admin API, once the process may
/// have as many descriptors as the system lets it. Traffic cannot take those that the admin API and
/// the process itself need, so a flood of connections hides neither health nor metrics.
pub(super) fn connection_limits(limits: &Limits, fronts: usize) -> (Limits, Limits) {
    // What the shell or the service manager gives a process by default is for programs that cannot
    // use more.
    let descriptors = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(u64::MAX);
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let own = RESERVED_FDS + FDS_PER_THREAD * threads;
    let wanted = limits.connections_max as u64;
    let (traffic, admin) = divide(descriptors, own, wanted, fronts as u64);
    if traffic < wanted {
        tracing::warn!(
            descriptors,
            connections_max = traffic,
            "the system allows fewer open files than there could be connections; raise `ulimit -Hn` or LimitNOFILE"
        );
    }
    let with = |connections_max: u64| Limits {
        connections_max: usize::try_from(connections_max).unwrap_or(usize::MAX),
        ..limits.clone()
    };
    (with(traffic), with(admin))
}

/// Connections for each front end and for the admin API.
fn divide(descriptors: u64, own: u64, wanted: u64, fronts: u64) -> (u64, u64) {
    let admin = (descriptors / 8).clamp(1, ADMIN_MAX);
    let own = own.min(descriptors / 2);
    let left = descriptors.saturating_sub(admin + own) / fronts.max(1);
    (left.clamp(1, wanted), admin.min(wanted))
}
