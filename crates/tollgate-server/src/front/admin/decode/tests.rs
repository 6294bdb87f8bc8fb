use super::super::route::AdminRoute;
use super::*;

fn fails(input: &str, route: &AdminRoute) -> (u16, Option<String>) {
    let problem = body(input.as_bytes(), route.members().unwrap()).unwrap_err();
    let json = serde_json::to_value(&problem).unwrap();
    (problem.into_response().status().as_u16(), json["field"].as_str().map(str::to_owned))
}

#[test]
fn each_call_has_its_members() {
    let read =
        |input: &str, route: &AdminRoute| body(input.as_bytes(), route.members().unwrap()).unwrap();
    let full = read(
        r#"{"attributes": {"user": "4\u0032"}, "limit": "a", "for": "10m"}"#,
        &AdminRoute::Block,
    );
    assert_eq!(full.attributes, [("user".to_owned(), "42".to_owned())]);
    assert_eq!((full.limit.as_deref(), full.for_us), (Some("a"), Some(600_000_000)));
    assert_eq!(read(r#"{"mode": "off"}"#, &AdminRoute::SetMode("a".into())).mode, Some(Mode::Off));
    assert_eq!(read("{}", &AdminRoute::Inspect), AdminBody::default());
    assert_eq!(read("", &AdminRoute::Reload), AdminBody::default());
    assert_eq!(read("{}", &AdminRoute::Reload), AdminBody::default());
}

#[test]
fn what_makes_no_sense_is_named() {
    let mode = AdminRoute::SetMode("a".into());
    for (input, route, field) in [
        ("", &AdminRoute::Inspect, "body"),
        ("[]", &AdminRoute::Inspect, "body"),
        ("{", &AdminRoute::Inspect, "body"),
        ("{} {}", &AdminRoute::Inspect, "body"),
        (r#"{"cost": 1}"#, &AdminRoute::Inspect, "cost"),
        (r#"{"limit": "a", "limit": "a"}"#, &AdminRoute::Reset, "limit"),
        (r#"{"limit": 1}"#, &AdminRoute::Reset, "limit"),
        (r#"{"limit": ""}"#, &AdminRoute::Reset, "limit"),
        (r#"{"for": "1m"}"#, &AdminRoute::Unblock, "for"),
        ("{}", &AdminRoute::Block, "for"),
        (r#"{"for": "soon"}"#, &AdminRoute::Block, "for"),
        (r#"{"for": "0s"}"#, &AdminRoute::Block, "for"),
        (r#"{"for": "367d"}"#, &AdminRoute::Block, "for"),
        (r#"{"for": 10}"#, &AdminRoute::Block, "for"),
        (r#"{"attributes": []}"#, &AdminRoute::Inspect, "attributes"),
        (r#"{"attributes": {"user": 1}}"#, &AdminRoute::Inspect, "attributes.user"),
        (r#"{"attributes": {"a": "1", "a": "1"}}"#, &AdminRoute::Inspect, "attributes.a"),
        ("{}", &mode, "mode"),
        (r#"{"mode": "on"}"#, &mode, "mode"),
        (r#"{"mode": null}"#, &mode, "mode"),
        (r#"{"a": 1}"#, &AdminRoute::Reload, "a"),
    ] {
        assert_eq!(fails(input, route), (400, Some(field.to_owned())), "{input}");
    }
}

#[test]
fn the_caps_of_the_check_api_hold() {
    let many: Vec<String> = (0..65).map(|n| format!("\"{n}\": \"\"")).collect();
    let many = format!("{{\"attributes\": {{{}}}}}", many.join(","));
    assert_eq!(fails(&many, &AdminRoute::Inspect).0, 400);
    let long = format!("{{\"attributes\": {{\"a\": \"{}\"}}}}", "x".repeat(4_097));
    assert_eq!(fails(&long, &AdminRoute::Inspect), (400, Some("attributes.a".into())));
    assert_eq!(fails(&" ".repeat(BODY_BYTES_MAX + 1), &AdminRoute::Inspect).0, 413);
    let deep = format!("{{\"limit\": {}", "[".repeat(60_000));
    assert_eq!(fails(&deep, &AdminRoute::Inspect).0, 400);
    let deep = format!("{{\"attributes\": {}{}}}", "[".repeat(100), "]".repeat(100));
    assert_eq!(fails(&deep, &AdminRoute::Inspect).0, 400);
}
