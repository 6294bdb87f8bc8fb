use super::*;

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
        assert!(is_figure(name), "{name}");
    }
    for name in ["ratelimit-policy", "x-ratelimit-limit", "x-ratelimit-policy", "date", "x-", "x-a"]
    {
        assert!(!is_figure(name), "{name}");
    }
}
