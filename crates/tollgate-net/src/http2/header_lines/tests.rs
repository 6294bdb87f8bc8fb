use super::*;

/// The never-indexed headers of a response.
fn kept_out(sent_counters: &Cell<bool>) -> Vec<String> {
    let names = ["ratelimit", "ratelimit-policy", "x-ratelimit-remaining", "date"];
    let mut headers: HeaderMap =
        names.into_iter().map(|name| (name.parse().unwrap(), "1".parse().unwrap())).collect();
    mark_never_indexed(&mut headers, sent_counters);
    let marked = headers.iter().filter(|(_, value)| value.is_sensitive());
    let mut marked: Vec<_> = marked.map(|(name, _)| name.to_string()).collect();
    marked.sort();
    marked
}

#[test]
fn counters_are_never_indexed_after_the_first() {
    let sent_counters = Cell::new(false);
    assert!(kept_out(&sent_counters).is_empty());
    for _ in 0..2 {
        assert_eq!(kept_out(&sent_counters), ["ratelimit", "x-ratelimit-remaining"]);
    }
}

#[test]
fn counters_are_told_from_what_stays() {
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
