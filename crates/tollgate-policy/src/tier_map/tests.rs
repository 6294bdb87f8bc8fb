use super::*;

#[test]
fn values_are_text_whether_quoted_or_not() {
    let tiers = TierMap::read(b"by: user\nmap:\n  42: pro\n  \"43\": free\n").unwrap();
    assert_eq!(
        (tiers.tier("42"), tiers.tier("43"), tiers.tier("4")),
        (Some("pro"), Some("free"), None)
    );
    assert_eq!(TierMap::read(b"{by: api_key}").unwrap().by(), "api_key");
}

#[test]
fn mistakes_are_found_at_their_place() {
    let error = |text: &str| {
        let error = TierMap::read(text.as_bytes()).unwrap_err().remove(0);
        (error.line, error.code)
    };
    assert_eq!(error("map: {a: b}"), (1, "TG006"));
    assert_eq!(error("by: user\nmaps: {a: b}"), (2, "TG002"));
    assert_eq!(error("by: user\nmap: {a: b, a: c}"), (2, "TG003"));
    assert_eq!(error("by: user\nmap: [a]"), (2, "TG004"));
    assert_eq!(error("[a]"), (1, "TG004"));
}
