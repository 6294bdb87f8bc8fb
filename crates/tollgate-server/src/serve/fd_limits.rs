//! Limits of connections, from the file descriptors that the system allows.

#[cfg(test)]
mod tests;

use tollgate_net::Limits;

/// Limit of admin connections: enough for scrapers, few enough for traffic.
const ADMIN_MAX: u64 = 256;
/// Descriptors for listeners and files, and a margin for connections that are closed at once.
const RESERVED_FDS: u64 = 96;
/// Descriptors of a thread's event loop.
const FDS_PER_THREAD: u64 = 4;

/// Raises the process's descriptor limit. Returns the connection limits of each of `fronts` front
/// ends, and of the admin API. Traffic leaves enough descriptors for health and metrics.
pub(super) fn connection_limits(limits: &Limits, fronts: usize) -> (Limits, Limits) {
    // The default of shells and service managers is meant for programs that use `select`.
    let descriptors = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(u64::MAX);
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let own = RESERVED_FDS + FDS_PER_THREAD * threads;
    let wanted = limits.connections_max;
    let (traffic, admin) = divide(descriptors, own, wanted, fronts as u64);
    if traffic < wanted {
        tracing::warn!(
            descriptors,
            connections_max = traffic,
            connections_wanted = wanted,
            "too few file descriptors: each listener accepts fewer connections than configured; \
             raise the hard limit (`ulimit -Hn`, or LimitNOFILE in a systemd unit)"
        );
    }
    let with = |connections_max| Limits { connections_max, ..limits.clone() };
    (with(traffic), with(admin))
}

/// Divides descriptors into connections per front end and for the admin API.
fn divide(descriptors: u64, own: u64, wanted: u64, fronts: u64) -> (u64, u64) {
    let admin = (descriptors / 8).clamp(1, ADMIN_MAX);
    let own = own.min(descriptors / 2);
    let left = descriptors.saturating_sub(admin + own) / fronts.max(1);
    (left.clamp(1, wanted), admin.min(wanted))
}
