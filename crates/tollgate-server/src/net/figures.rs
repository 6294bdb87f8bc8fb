//! Fields that are different in every answer, by HTTP/2.

use super::life::Life;
use hyper::HeaderMap;

/// Keeps figures out of the table in which HTTP/2 keeps what has been said, to say it again in a byte: what is left of a limit is seldom said twice, and each
/// figure would take the place of something that is. Those of the first answer go there for their names, to which later ones refer.
pub(super) fn keep_out(headers: &mut HeaderMap, life: &Life) {
    if !life.is_shared() {
        return;
    }
    let is_first = !life.told.get();
    for (name, value) in headers.iter_mut() {
        if is_figure(name.as_str()) {
            life.told.set(true);
            // As what must not be indexed is marked.
            value.set_sensitive(!is_first);
        }
    }
}

/// What is left, and until when. Limits and policies are the same again and again.
fn is_figure(name: &str) -> bool {
    let name = name.strip_prefix("x-").unwrap_or(name);
    name.strip_prefix("ratelimit")
        .is_some_and(|rest| matches!(rest, "" | "-remaining" | "-reset" | "-reset-after" | "-used"))
}

#[cfg(test)]
mod tests;
