//! Counters in HPACK.

use crate::net::life::ConnectionState;
use hyper::HeaderMap;

/// Marks counters never-indexed so that they do not evict useful HPACK entries: what is left of a
/// limit is seldom said twice. The first answer's counters are indexed for their names, to which
/// later ones refer.
pub(super) fn mark_never_indexed(headers: &mut HeaderMap, life: &ConnectionState) {
    if !life.is_multiplexed() {
        return;
    }
    let is_first = !life.sent_counters.get();
    for (name, value) in headers.iter_mut() {
        if is_counter(name.as_str()) {
            life.sent_counters.set(true);
            // As what must not be indexed is marked.
            value.set_sensitive(!is_first);
        }
    }
}

/// What is left, and until when. Limits and policies are the same again and again.
fn is_counter(name: &str) -> bool {
    let name = name.strip_prefix("x-").unwrap_or(name);
    name.strip_prefix("ratelimit")
        .is_some_and(|rest| matches!(rest, "" | "-remaining" | "-reset" | "-reset-after" | "-used"))
}

#[cfg(test)]
mod tests;
