use super::*;

fn of(text: &str) -> Option<Duration> {
    let mut headers = HeaderMap::new();
    headers.insert("grpc-timeout", HeaderValue::from_str(text).unwrap());
    timeout(&headers)
}

#[test]
fn deadlines_are_read_in_all_units() {
    assert_eq!(of("2H"), Some(Duration::from_secs(7_200)));
    assert_eq!(of("3M"), Some(Duration::from_secs(180)));
    assert_eq!(of("4S"), Some(Duration::from_secs(4)));
    assert_eq!(of("50m"), Some(Duration::from_millis(50)));
    assert_eq!(of("60u"), Some(Duration::from_micros(60)));
    assert_eq!(of("70n"), Some(Duration::from_nanos(70)));
    assert_eq!(of("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
    for wrong in ["", "m", "1", "1x", "-1m", "+1m", "1.5m", "100000000m", "1 m"] {
        assert_eq!(of(wrong), None, "{wrong}");
    }
    assert_eq!(timeout(&HeaderMap::new()), None);
}

#[test]
fn messages_survive_a_header_field() {
    let status = Status::new(INVALID_ARGUMENT, "100 % wrong\nhere: é");
    assert_eq!(status.trailers()["grpc-message"], "100 %25 wrong%0Ahere: %C3%A9");
    assert_eq!(status.trailers()["grpc-status"], "3");
}
