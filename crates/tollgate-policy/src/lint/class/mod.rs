//! Lints about classes of requests: TG126 to TG128.

pub(super) mod client_chosen;
pub(super) mod unreachable;
pub(super) mod unused;
