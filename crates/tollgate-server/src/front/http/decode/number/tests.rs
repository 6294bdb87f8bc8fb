use super::super::{Fault, Op, body};

#[test]
fn a_cost_is_a_whole_number() {
    let cost = |text: &str| {
        body(format!("{{\"cost\": {text}}}").as_bytes(), Op::Check)
            .map(|body| body.cost.unwrap())
            .map_err(|error| {
                assert_eq!(error.field.as_deref(), Some("cost"));
                error.fault
            })
    };
    assert_eq!(cost("0"), Ok(0));
    assert_eq!(cost("18446744073709551615"), Ok(u64::MAX));
    assert_eq!(cost("-1"), Err(Fault::Negative));
    assert_eq!(cost("-1.5"), Err(Fault::Negative));
    // JSON has one kind of number, so a whole number may have a point.
    for (text, value) in
        [("1.0", 1), ("1e3", 1000), ("1.50e1", 15), ("-0", 0), ("-0.0", 0), ("0e9", 0)]
    {
        assert_eq!(cost(text), Ok(value), "{text}");
    }
    assert_eq!(cost("18446744073709551615.00"), Ok(u64::MAX));
    assert_eq!(cost("1844674407370955161.5e1"), Ok(u64::MAX));
    for text in [
        "1.5",
        "1e-1",
        "1.00000000000000000001",
        "18446744073709551616",
        "1e20",
        "1e999999999999999999999",
    ] {
        assert_eq!(cost(text), Err(Fault::NotAnInteger), "{text}");
    }
    for text in ["\"1\"", "null", "true", "[1]", "{}"] {
        assert!(matches!(cost(text), Err(Fault::Type(_))), "{text}");
    }
}
