use super::parse;

#[test]
fn an_event_has_a_name_and_data_and_a_comment_has_neither() {
    let event = parse("event: decision\ndata: {\"a\": 1}\n\n").unwrap();
    assert_eq!((&*event.name, &event.data["a"]), ("decision", &1.into()));
    assert!(parse(":\n\n").is_none() && parse("event: x\ndata: {\n\n").is_none());
}
