use super::*;
use crate::address::InvalidAddress;

fn names(all: &[&str]) -> Names {
    let mut names = Names::default();
    for name in all {
        names.intern(name).unwrap();
    }
    names
}

/// Returns what `get` shows for a single attribute.
fn canonical(name: &str, value: &str) -> Option<String> {
    let names = names(&[name]);
    let mut facts = Facts::new(&names, 64, FactsBuffer::default());
    facts.set(name, value).unwrap();
    facts.get(name).map(Cow::into_owned)
}

#[test]
fn values_take_their_one_form() {
    let cases = [
        ("method", "get", "GET"),
        ("method", "GET", "GET"),
        ("host", "Example.COM", "example.com"),
        ("host", "example.com", "example.com"),
        ("host", "Example.com.", "example.com"),
        ("host", "example.com:80", "example.com"),
        ("host", "example.com.:80", "example.com"),
        ("host", "example.com:", "example.com"),
        ("host", ".", "."),
        ("host", ".:80", "."),
        ("host", "example.com:http", "example.com:http"),
        ("host", "[2001:DB8::1]:80", "[2001:db8::1]"),
        ("host", "2001:db8::1", "2001:db8::1"),
        ("path", "/%6cogin/../a?b", "/a"),
        ("path", "/A/", "/A/"),
        ("ip", "192.0.2.1", "192.0.2.1"),
        ("ip", "[::ffff:192.0.2.1]:80", "192.0.2.1"),
        ("ip", "2001:DB8::1:2:3:4%eth0", "2001:db8::"),
        ("user", "Jane Doe", "Jane Doe"),
        // sha256("secret") begins with these 128 bits.
        ("api_key", "secret", "2bb80d537b1da3e38bd30361aa855686"),
    ];
    for (name, value, expected) in cases {
        assert_eq!(canonical(name, value).as_deref(), Some(expected), "{name}={value}");
    }
}

#[test]
fn an_empty_value_is_an_absent_one_and_the_last_value_counts() {
    for name in ["user", "ip", "path", "method", "host", "api_key"] {
        assert_eq!(canonical(name, ""), None, "{name}");
        let names = names(&[name]);
        let mut facts = Facts::new(&names, 64, FactsBuffer::default());
        facts.set(name, "192.0.2.1").unwrap();
        facts.set(name, "").unwrap();
        assert_eq!(facts.get(name), None, "{name}");
        let id = names.get(name).unwrap();
        assert_eq!((facts.match_text(id), facts.match_address(id)), (None, None));
        facts.set(name, "192.0.2.2").unwrap();
        assert!(facts.get(name).is_some(), "{name}");
    }
}

#[test]
fn an_address_that_is_none_is_an_error_whether_it_is_used_or_not() {
    for used in [&["ip"][..], &[]] {
        let names = names(used);
        let mut facts = Facts::new(&names, 64, FactsBuffer::default());
        assert_eq!(facts.set("ip", "nonsense"), Err(InvalidAddress.into()));
        assert_eq!(facts.set("ip", ""), Ok(()));
        assert_eq!(facts.set("ip", "::1"), Ok(()));
    }
}

#[test]
fn names_that_the_policy_does_not_use_are_ignored() {
    let names = names(&["user"]);
    let mut facts = Facts::new(&names, 64, FactsBuffer::default());
    facts.set("other", "x").unwrap();
    assert_eq!(facts.get("other"), None);
    assert_eq!(format!("{facts:?}"), "{}");
}

#[test]
fn names_of_header_fields_have_no_case_and_other_names_do() {
    let names = names(&["header.X-Plan", "User"]);
    let mut facts = Facts::new(&names, 64, FactsBuffer::default());
    facts.set("header.x-PLAN", "pro").unwrap();
    facts.set("user", "42").unwrap();
    assert_eq!(facts.get("header.x-plan").as_deref(), Some("pro"));
    assert_eq!(facts.get("User"), None);
}

#[test]
fn a_match_sees_the_whole_address_and_the_clear_api_key() {
    let names = names(&["ip", "api_key"]);
    let (ip, api_key) = (names.get("ip").unwrap(), names.get("api_key").unwrap());
    let mut facts = Facts::new(&names, 64, FactsBuffer::default());
    facts.set("ip", "2001:db8::1").unwrap();
    facts.set("api_key", "sk_test_1").unwrap();
    assert_eq!(facts.match_address(ip), Some("2001:db8::1".parse().unwrap()));
    assert_eq!(facts.match_text(api_key), Some("sk_test_1"));
    facts.set_address("::ffff:192.0.2.1".parse().unwrap());
    assert_eq!(facts.match_address(ip), Some("192.0.2.1".parse().unwrap()));
    assert_eq!(facts.get("ip").as_deref(), Some("192.0.2.1"));
}

#[test]
fn nothing_secret_is_printed() {
    let names = names(&["api_key", "user"]);
    let mut facts = Facts::new(&names, 64, FactsBuffer::default());
    facts.set("api_key", "sk_live_1").unwrap();
    assert_eq!(format!("{facts:?}"), r#"{"api_key"}"#);
}

#[test]
fn a_buffer_carries_nothing_over() {
    let names = names(&["user", "path", "method", "api_key", "ip"]);
    let mut facts = Facts::new(&names, 64, FactsBuffer::default());
    for (name, value) in
        [("user", "1"), ("path", "/%41"), ("method", "get"), ("api_key", "k"), ("ip", "::1")]
    {
        facts.set(name, value).unwrap();
    }
    facts.set_tier("pro");
    let facts = Facts::new(&names, 64, facts.into_buffer());
    assert_eq!(facts.tier(), None);
    for (id, name) in names.iter() {
        assert_eq!(facts.get(name), None);
        assert_eq!((facts.match_text(id), facts.match_address(id)), (None, None));
    }
}

#[test]
fn numbers_of_another_policy_do_no_harm() {
    let (few, many) = (names(&["user"]), names(&["a", "b", "c"]));
    let mut facts = Facts::new(&few, 64, FactsBuffer::default());
    assert_eq!(facts.set_id(many.get("c").unwrap(), "x"), Ok(()));
    assert_eq!(facts.match_text(many.get("c").unwrap()), None);
}

#[test]
fn there_are_65536_names_and_no_more() {
    let mut names = Names::default();
    for number in 0..=u32::from(u16::MAX) {
        assert!(names.intern(&number.to_string()).is_some());
    }
    assert_eq!(names.intern("one more"), None);
    assert!(names.intern("7").is_some());
}

#[test]
fn a_value_that_is_written_takes_the_same_form_as_one_that_is_set() {
    for (name, value) in [
        ("method", "get"),
        ("host", "Example.COM"),
        ("host", "Example.COM.:80"),
        ("host", ":80"),
        ("path", "/%6cogin/../a?b"),
        ("ip", "[::ffff:192.0.2.1]:80"),
        ("user", "Jane Doe"),
        ("api_key", "secret"),
        ("user", ""),
    ] {
        let names = names(&[name]);
        let mut facts = Facts::new(&names, 64, FactsBuffer::default());
        let (first, rest) = value.split_at(value.len() / 2);
        let pieces = [first, rest];
        facts.write(name, |out| pieces.iter().for_each(|piece| out.push_str(piece))).unwrap();
        assert_eq!(facts.get(name).map(Cow::into_owned), canonical(name, value), "{name}={value}");
        if name == "api_key" {
            let id = names.get(name).unwrap();
            assert_eq!(facts.match_text(id), Some("secret"), "a match sees it in clear");
        }
        facts.write("unknown", |_| panic!("the policy does not use it")).unwrap();
    }
    let names = names(&["ip"]);
    let mut facts = Facts::new(&names, 64, FactsBuffer::default());
    assert!(facts.write("ip", |out| out.push_str("nobody")).is_err());
    assert_eq!(facts.get("ip"), None);
}
