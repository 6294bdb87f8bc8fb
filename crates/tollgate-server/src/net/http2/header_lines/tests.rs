use super::*;
use crate::net::{
    Limits,
    connection::{ConnectionState, FrontendContext, timer::CoarseTimers},
};
use std::{rc::Rc, sync::Arc, time::Duration};

/// Which fields of an answer are kept out of the table.
fn kept_out(life: &ConnectionState) -> Vec<String> {
    let names = ["ratelimit", "ratelimit-policy", "x-ratelimit-remaining", "date"];
    let mut headers: HeaderMap =
        names.into_iter().map(|name| (name.parse().unwrap(), "1".parse().unwrap())).collect();
    mark_never_indexed(&mut headers, life);
    let marked = headers.iter().filter(|(_, value)| value.is_sensitive());
    let mut marked: Vec<_> = marked.map(|(name, _)| name.to_string()).collect();
    marked.sort();
    marked
}

#[test]
fn figures_are_kept_out_after_the_first() {
    let terms = FrontendContext { index: 0, limits: Limits::default(), stats: Arc::default() };
    let life =
        ConnectionState::new(Rc::new(terms), Rc::new(CoarseTimers::new(Duration::from_secs(1))), 0);
    // HTTP/1 has no table.
    assert!(kept_out(&life).is_empty());
    life.set_multiplexed();
    assert!(kept_out(&life).is_empty());
    for _ in 0..2 {
        assert_eq!(kept_out(&life), ["ratelimit", "x-ratelimit-remaining"]);
    }
}

#[test]
fn figures_are_told_from_what_stays() {
    for name in [
        "ratelimit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "ratelimit-remaining",
        "ratelimit-reset",
        "x-ratelimit-reset-after",
        "x-ratelimit-used",
    ] {
        assert!(is_counter(name), "{name}");
    }
    for name in ["ratelimit-policy", "x-ratelimit-limit", "x-ratelimit-policy", "date", "x-", "x-a"]
    {
        assert!(!is_counter(name), "{name}");
    }
}
