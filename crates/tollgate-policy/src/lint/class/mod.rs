//! Lints about classes of requests: TG126 to TG129.

pub(super) mod client_chosen;
pub(super) mod forwarded;
pub(super) mod unreachable;
pub(super) mod unused;
