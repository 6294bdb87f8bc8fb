//! Tests of what the parsers accept and refuse, and of their error messages.

use crate::header::{
    FieldErrorKind, FieldInstant, LimitItem, MAX_FIELD_BYTES, MAX_MEMBERS, PolicyItem, Profile,
    Scope, Unit, parse, parse_policy, parse_ratelimit,
};
use std::string::ToString;
use std::vec::Vec;

fn seconds(s: u64) -> Option<FieldInstant> {
    Some(FieldInstant::AfterUs(s * 1_000_000))
}

fn limit(name: &str, remaining: u64, reset: Option<FieldInstant>) -> LimitItem {
    LimitItem { name: Some(name.into()), remaining, reset, ..LimitItem::default() }
}

fn policy(name: Option<&str>, quota: u64, window_s: Option<u64>) -> PolicyItem {
    let unit = Some(Unit::Requests);
    PolicyItem { name: name.map(Into::into), quota, unit, window_s, partition: None }
}

#[test]
fn lists_in_every_accepted_spelling() {
    let expected = [limit("a", 1, seconds(2)), limit("b", 3, None)];
    for lines in [
        &[r#""a";r=1;t=2, "b";r=3"#][..],
        &[r#""a";r=1;t=2,"b";r=3"#],
        &["  \"a\"; r=1;  t=2 \t,\t \"b\";r=3 "],
        &[r#""a";r=1;t=2"#, r#""b";r=3"#],
        &["a;r=1;t=2, b;r=3"],
        &[r#""a";a=1;w=2, b;a=3"#],
        &[r#""a";r=9;r=1;t="x";t=2, "b";r=3"#],
        &[r#""a";a=9;r=1;w=9;t=2, "b";r=3"#],
        &[
            r#""a";r=1;t=2;tollgate-x;y=?0;z=1.5;d=@-1;s="\"";n=%"caf%c3%a9";k=a/b:c;p=:AA==:, b;r=3"#,
        ],
    ] {
        assert_eq!(
            parse_ratelimit(lines.iter().copied()).as_deref(),
            Ok(&expected[..]),
            "{lines:?}"
        );
    }
    assert_eq!(parse_ratelimit([]), Ok(Vec::new()));
    assert_eq!(parse_ratelimit([r#""up\"lo\\ad";r=0"#]).unwrap(), [limit(r#"up"lo\ad"#, 0, None)]);
}

#[test]
fn policies_named_and_not() {
    assert_eq!(
        parse_policy([r#""x"; q=5; w=60"#, "y;q=0"]).unwrap(),
        [policy(Some("x"), 5, Some(60)), policy(Some("y"), 0, None)]
    );
    assert_eq!(
        parse_policy(["100;w=60, 1000;w=3600"]).unwrap(),
        [policy(None, 100, Some(60)), policy(None, 1_000, Some(3_600))]
    );
    let unit = |text: &str| parse_policy([text]).unwrap()[0].unit;
    assert_eq!(unit(r#""a";q=1;qu="requests""#), Some(Unit::Requests));
    assert_eq!(unit(r#""a";q=1;qu="request""#), Some(Unit::Requests));
    assert_eq!(unit(r#""a";q=1;qu="content-bytes""#), Some(Unit::ContentBytes));
    assert_eq!(unit(r#""a";q=1;qu=concurrent-requests"#), Some(Unit::ConcurrentRequests));
    assert_eq!(unit(r#""a";q=1;qu="bananas""#), None, "not requests");
}

#[test]
fn base64_as_the_drafts_have_it() {
    for (encoded, bytes) in [
        (":cHsdsRa894==:", Some(&[0x70, 0x7b, 0x1d, 0xb1, 0x16, 0xbc, 0xf7][..])),
        (":sdfjLJUOUH==:", Some(&[0xb1, 0xd7, 0xe3, 0x2c, 0x95, 0x0e, 0x50])),
        (":6j/UO+HlfWLhY9rh:", Some(b"\xea\x3f\xd4\x3b\xe1\xe5\x7d\x62\xe1\x63\xda\xe1")),
        ("::", Some(b"")),
        (":YQ==:", Some(b"a")),
        (":YQ:", Some(b"a")),
        (":YWI=:", Some(b"ab")),
        (":YWI:", Some(b"ab")),
        (":Y:", None),
        (":YQ=:", None),
        (":YWI==:", None),
        (":Y===:", None),
        (":====:", None),
        (":YQ==YQ==:", None),
        (":Y-_Q:", None),
        (":YQ==", None),
    ] {
        for (value, read) in [
            (std::format!("p;r=1;pk={encoded}"), true),
            (std::format!("p;q=1;pk={encoded}"), false),
        ] {
            let partition = if read {
                parse_ratelimit([value.as_str()]).ok().map(|items| items[0].partition.clone())
            } else {
                parse_policy([value.as_str()]).ok().map(|items| items[0].partition.clone())
            };
            assert_eq!(partition.flatten().as_deref(), bytes, "{value}");
        }
    }
}

#[test]
fn the_dictionary_of_draft_7() {
    let item =
        |limit, remaining, reset| LimitItem { limit, remaining, reset, ..LimitItem::default() };
    for lines in [
        &["limit=100, remaining=50, reset=5"][..],
        &["limit=100,remaining=50", "reset=5"],
        &["reset=5;x=1, remaining=7, other=\"x\", flag, limit=100, remaining=50"],
    ] {
        assert_eq!(
            parse_ratelimit(lines.iter().copied()).unwrap(),
            [item(Some(100), 50, seconds(5))]
        );
    }
    assert_eq!(parse_ratelimit(["remaining=0"]).unwrap(), [item(None, 0, None)]);
}

#[test]
fn malformed_fields_are_errors_that_say_why() {
    for (value, message) in [
        (r#""a";t=1"#, "RateLimit: the member at byte 0 lacks `r`"),
        (r#""a";r=1, "b""#, "RateLimit: the member at byte 9 lacks `r`"),
        (r#""a";r=-1"#, "RateLimit: `r` at byte 0 has an invalid value"),
        (r#""a";r=1.0"#, "RateLimit: `r` at byte 0 has an invalid value"),
        (r#""a";r"#, "RateLimit: `r` at byte 0 has an invalid value"),
        (r#""a";r="1""#, "RateLimit: `r` at byte 0 has an invalid value"),
        (r#""a";r=1;t=x"#, "RateLimit: `t` at byte 0 has an invalid value"),
        (r#""a";r=1;pk="x""#, "RateLimit: `pk` at byte 0 has an invalid value"),
        (
            r#""a";r=1000000000000000"#,
            "RateLimit: expected an integer of at most 15 digits at byte 22",
        ),
        (r#""a";r=1,"#, "RateLimit: expected a member after the comma at byte 8"),
        (r#", "a";r=1"#, "RateLimit: expected a value at byte 0"),
        (r#""a";r=1 "b";r=1"#, "RateLimit: expected a comma or the end at byte 8"),
        (r#""a";r=1 ;t=1"#, "RateLimit: expected a comma or the end at byte 8"),
        (r#""a";R=1"#, "RateLimit: expected a key in lower case at byte 4"),
        (r#""a"#, "RateLimit: expected a closing quote at byte 2"),
        ("\"caf\u{e9}\";r=1", "RateLimit: expected a closing quote at byte 4"),
        (r#""a\n";r=1"#, "RateLimit: expected an escaped quote or backslash at byte 3"),
        (r#"("a");r=1"#, "RateLimit: expected a name at byte 0"),
        ("1;r=1", "RateLimit: expected a name at byte 0"),
        ("?1;r=1", "RateLimit: expected a name at byte 0"),
        ("a;r=1;x=:YQ", "RateLimit: expected a closing colon at byte 11"),
        ("a;r=1;x=:YQ=a:", "RateLimit: expected base64 at byte 9"),
        (
            r#"a;r=1;x=%"%C3""#,
            "RateLimit: expected two hexadecimal digits in lower case at byte 11",
        ),
        (r#"a;r=1;x=%"%c3""#, "RateLimit: expected the rest of a UTF-8 character at byte 13"),
        ("a;r=1;x=@1.5", "RateLimit: expected a date in whole seconds at byte 12"),
        ("a;r=1;x=1.2345", "RateLimit: expected a decimal of at most 12 and 3 digits at byte 14"),
        ("a;r=1;x=?2", "RateLimit: expected 0 or 1 at byte 9"),
        ("a;r=1;x=-", "RateLimit: expected a digit at byte 9"),
        ("limit=1, \"a\";r=1", "RateLimit: expected a key in lower case at byte 9"),
        ("a;r=1, limit=1", "RateLimit: the member at byte 0 lacks `remaining`"),
        ("limit=1", "RateLimit: the member at byte 0 lacks `remaining`"),
        ("remaining=x", "RateLimit: `remaining` at byte 0 has an invalid value"),
    ] {
        let error = parse_ratelimit([value]).expect_err(value);
        assert_eq!(error.to_string(), message, "{value}");
    }
    for (value, message) in [
        ("a", "RateLimit-Policy: the member at byte 0 lacks `q`"),
        ("-1;w=1", "RateLimit-Policy: `q` at byte 0 has an invalid value"),
        ("a;q=1;w=0", "RateLimit-Policy: `w` at byte 0 has an invalid value"),
        ("a;q=1;qu=1", "RateLimit-Policy: `qu` at byte 0 has an invalid value"),
        ("1.5;w=1", "RateLimit-Policy: expected a name or a quota at byte 0"),
    ] {
        assert_eq!(parse_policy([value]).expect_err(value).to_string(), message, "{value}");
    }
}

#[test]
fn size_is_capped_over_all_lines() {
    let lines = |n| std::iter::repeat_n("a;r=1", n);
    assert_eq!(parse_ratelimit(lines(MAX_MEMBERS)).unwrap().len(), MAX_MEMBERS);
    let kind = |result: Result<Vec<LimitItem>, _>| match result {
        Err(crate::header::FieldError { kind, .. }) => kind,
        Ok(_) => panic!("accepted"),
    };
    assert_eq!(kind(parse_ratelimit(lines(MAX_MEMBERS + 1))), FieldErrorKind::TooManyMembers);
    let half = std::format!("{};r=1", "n".repeat(MAX_FIELD_BYTES / 2 - 4));
    assert_eq!(parse_ratelimit([half.as_str(); 2]).unwrap().len(), 2);
    assert_eq!(kind(parse_ratelimit([half.as_str(), &half, "a"])), FieldErrorKind::TooLong);
    let long = "1".repeat(MAX_FIELD_BYTES + 1);
    let error = parse(Profile::GitHub, [("x-ratelimit-limit", long.as_str())]).unwrap_err();
    assert_eq!((error.field, error.kind), ("X-RateLimit-Limit", FieldErrorKind::TooLong));
    let many = std::iter::repeat_n(("ratelimit", ""), 1_000);
    let error = parse(Profile::Draft11, many).unwrap_err();
    assert_eq!(error.kind, FieldErrorKind::TooManyMembers);
}

#[test]
fn the_profile_says_what_reset_means() {
    let headers = [
        ("Date", "Sun, 15 Nov 2026 12:00:18 GMT"),
        ("x-ratelimit-limit", " 100 "),
        ("X-RATELIMIT-REMAINING", "59.0"),
        ("X-RateLimit-Reset", "1794744060.0000001"),
        ("X-RateLimit-Policy", "100;w=60"),
    ];
    let at = parse(Profile::XRateLimitEpoch, headers).unwrap();
    assert_eq!(at.policies, [policy(None, 100, Some(60))]);
    let item = &at.limits[0];
    assert_eq!((item.limit, item.remaining), (Some(100), 59));
    assert_eq!(item.reset, Some(FieldInstant::AtUs(1_794_744_060_000_001)), "a wait rounds up");
    assert_eq!(item.reset.unwrap().after_us(1_794_744_018_000_000), 42_000_001);
    assert_eq!(item.reset.unwrap().after_us(u64::MAX), 0);
    let after = parse(Profile::XRateLimitDelta, headers).unwrap();
    assert_eq!(after.limits[0].reset, Some(FieldInstant::AfterUs(1_794_744_060_000_001)));
    assert_eq!(parse(Profile::None, headers), Ok(Default::default()));
    assert_eq!(parse(Profile::Draft6, headers), Ok(Default::default()));
}

#[test]
fn envoy_lists_policies_behind_the_limit() {
    let headers = [
        ("x-ratelimit-limit", r#"10, 10;w=1;name="per-ip", 1000;w=3600"#),
        ("x-ratelimit-remaining", "9"),
        ("x-ratelimit-reset", "1"),
    ];
    let parsed = parse(Profile::XRateLimitDelta, headers).unwrap();
    assert_eq!(parsed.limits[0].limit, Some(10));
    assert_eq!(
        parsed.policies,
        [policy(Some("per-ip"), 10, Some(1)), policy(None, 1_000, Some(3_600))]
    );
}

#[test]
fn discord_prefers_the_wait_and_names_the_scope() {
    let headers = [
        ("X-RateLimit-Limit", "5"),
        ("X-RateLimit-Remaining", "0"),
        ("X-RateLimit-Reset", "1470173023.123"),
        ("X-RateLimit-Bucket", "abcd1234"),
        ("X-RateLimit-Scope", "global"),
    ];
    let item = parse(Profile::Discord, headers).unwrap().limits.remove(0);
    assert_eq!(item.reset, Some(FieldInstant::AtUs(1_470_173_023_123_000)));
    assert_eq!((item.bucket.as_deref(), item.scope), (Some("abcd1234"), Some(Scope::Global)));
    let headers = headers.into_iter().chain([("X-RateLimit-Reset-After", "64.57")]);
    let item = parse(Profile::Discord, headers).unwrap().limits.remove(0);
    assert_eq!(item.reset, Some(FieldInstant::AfterUs(64_570_000)));
}

#[test]
fn plain_numbers_are_plain_and_single() {
    let field = "X-RateLimit-Remaining";
    for bad in ["", "-1", "+1", "1e3", "0x1", "1.", ".5", "1 2", "\u{661}", "1,2"] {
        let error = parse(Profile::GitHub, [(field, bad)]).expect_err(bad);
        assert_eq!(error.to_string(), "X-RateLimit-Remaining: expected a count at byte 0");
        assert!(parse(Profile::GitHub, [("X-RateLimit-Reset", bad)]).is_err(), "{bad}");
        if bad != "1,2" {
            assert!(parse(Profile::GitHub, [("X-RateLimit-Limit", bad)]).is_err(), "{bad}");
        }
    }
    let twice = parse(Profile::GitHub, [(field, "1"), (field, "1")]).unwrap_err();
    assert_eq!(twice.to_string(), "X-RateLimit-Remaining: sent more than once");
    let huge = parse(Profile::GitHub, [(field, "99999999999999999999999")]).unwrap();
    assert_eq!(huge.limits[0].remaining, u64::MAX);
}
