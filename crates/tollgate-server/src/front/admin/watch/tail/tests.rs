use super::sample;

#[test]
fn a_sample_is_a_share_in_percent() {
    for (text, ppm) in [("100%", 1_000_000), ("1%", 10_000), ("0.5%", 5_000), ("0.0001%", 1)] {
        assert_eq!(sample(text).unwrap(), ppm, "{text}");
    }
    for bad in ["", "1", "0%", "101%", "1.23456%", "-1%", "%", ".5%", "1e1%"] {
        assert!(sample(bad).is_err(), "{bad}");
    }
}
