use crate::front::grpc::messages::{
    Entry, RateLimitDescriptor, RateLimitOverride, RateLimitRequest, UInt64Value,
};

fn read(body: &str) -> Result<RateLimitRequest, String> {
    serde_json::from_str(body).map_err(|error| error.to_string())
}

#[test]
fn null_is_the_default_of_a_field() {
    let all = r#"{"domain": null, "descriptors": null, "hitsAddend": null}"#;
    assert_eq!(read(all).unwrap(), RateLimitRequest::default());
    let within = r#"{"descriptors": [{"entries": [{"key": null, "value": null}], "limit": null, "hitsAddend": null, "isNegativeHits": null},
        {"entries": null, "limit": {"requestsPerUnit": null, "unit": null}}]}"#;
    let first = RateLimitDescriptor { entries: vec![Entry::default()], ..Default::default() };
    let second =
        RateLimitDescriptor { limit: Some(RateLimitOverride::default()), ..Default::default() };
    assert_eq!(read(within).unwrap().descriptors, [first, second]);
    read(r#"{"descriptors": [null]}"#).unwrap_err();
}

#[test]
fn numbers_are_written_in_many_ways() {
    for (written, number) in [
        ("10", 10),
        ("1e1", 10),
        ("10.0", 10),
        ("\"10\"", 10),
        ("\"1E+1\"", 10),
        ("\"10.0\"", 10),
        ("-0", 0),
        ("4294967295", u32::MAX),
    ] {
        let request = read(&format!("{{\"hitsAddend\": {written}}}"));
        assert_eq!(request.map(|request| request.hits_addend), Ok(number), "{written}");
    }
    let most = r#"{"descriptors": [{"hitsAddend": "18446744073709551615"}]}"#;
    let addend = read(most).unwrap().descriptors[0].hits_addend;
    assert_eq!(addend, Some(UInt64Value { value: u64::MAX }));
    for bad in [
        "1.5",
        "-1",
        "4294967296",
        "1e40",
        "true",
        "[]",
        "\"\"",
        "\" 1\"",
        "\"x\"",
        "\"inf\"",
        "\"0x1\"",
        "\"1e\"",
    ] {
        read(&format!("{{\"hitsAddend\": {bad}}}")).unwrap_err();
    }
}

#[test]
fn what_is_wrong_is_said_in_words_of_the_caller() {
    for (body, words) in [
        (r#"{"hitsAddend": true}"#, "invalid type: boolean `true`, expected a whole number"),
        (r#"{"hitsAddend": "x"}"#, "invalid value: string \"x\", expected a whole number"),
        (r#"{"hitsAddend": -1}"#, "a number is negative or too large"),
        (
            r#"{"descriptors": [{"limit": {"unit": "eon"}}]}"#,
            "expected the name or the number of a unit",
        ),
        (
            r#"{"descriptors": [{"limit": {"unit": 1e9}}]}"#,
            "expected the name or the number of a unit",
        ),
    ] {
        let said = read(body).unwrap_err();
        assert!(said.contains(words), "{said}");
        assert!(!said.contains("enum"), "{said}");
    }
}

#[test]
fn units_have_names_and_numbers() {
    for (unit, number) in [("\"HOUR\"", 3), ("3", 3), ("\"UNKNOWN\"", 0), ("99", 99)] {
        let request = read(&format!("{{\"descriptors\": [{{\"limit\": {{\"unit\": {unit}}}}}]}}"));
        assert_eq!(request.unwrap().descriptors[0].limit.unwrap().unit, number, "{unit}");
    }
}
