use super::*;

fn written(write: impl Fn(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn seconds_are_exact_and_short() {
    for (us, text) in [
        (0, "0.0"),
        (1, "0.000001"),
        (105_000_000, "105.0"),
        (1_700_000_000_250_000, "1700000000.25"),
        (999_999, "0.999999"),
        (9_007_199_254_740_991, "9007199254.740991"),
    ] {
        assert_eq!(written(|out| seconds(out, us)), text);
    }
}

#[test]
fn strings_are_escaped() {
    assert_eq!(written(|out| string(out, "a\"b\\c\u{1}é")), "\"a\\\"b\\\\c\\u0001é\"");
}

#[test]
fn integers_reach_their_end() {
    assert_eq!(written(|out| integer(out, 0)), "0");
    assert_eq!(written(|out| integer(out, u64::MAX)), u64::MAX.to_string());
}
