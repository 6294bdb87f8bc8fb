//! Tests of bodies and rows, and of the reader against its oracle.

mod oracle;

use super::*;

#[track_caller]
fn bad(input: &str, op: Op) -> (Option<String>, Fault) {
    let error = body(input.as_bytes(), op).unwrap_err();
    (error.field.map(String::from), error.fault)
}

#[track_caller]
fn bad_row(input: &str) -> (Option<String>, Fault) {
    let error = row(input.as_bytes()).unwrap_err();
    (error.field.map(String::from), error.fault)
}

fn at(field: &str, fault: Fault) -> (Option<String>, Fault) {
    (Some(field.into()), fault)
}

fn time(text: &str) -> Result<u64, Fault> {
    row(format!("{{\"time\": {text}}}").as_bytes()).map(|row| row.time_us).map_err(|error| {
        assert_eq!(error.field.as_deref(), Some("time"));
        error.fault
    })
}

/// Drops the position of a fault in text that is not JSON: the readers may differ.
fn comparable(read: Result<Body<'_>, BadRequest>) -> Result<Body<'_>, BadRequest> {
    read.map_err(|bad| match bad.fault {
        Fault::NotJson(_) => Fault::NotJson("".into()).into(),
        _ => bad,
    })
}

fn read_into(input: &str, allowed: MemberSet) -> Result<Body<'_>, BadRequest> {
    let mut body = Body::default();
    reader::read(input, allowed, &mut body).map(|()| body)
}

#[test]
fn a_check_reads_attributes_and_cost() {
    let read = body(br#" {"attributes": {"user": "42", "path": "/api/x"}, "cost": 3} "#, Op::Check)
        .unwrap();
    assert_eq!(
        read.attributes[..],
        [("user".into(), "42".into()), ("path".into(), "/api/x".into())]
    );
    assert_eq!(read.cost, Some(3));
    assert_eq!(body(b"{}", Op::Check).unwrap(), Body::default());
}

#[test]
fn text_is_borrowed_unless_an_escape_was_undone() {
    let read =
        body(br#"{"attributes": {"a": "plain", "b": "caf\u00e9", "\u0063": "x"}}"#, Op::Peek)
            .unwrap();
    let [(a, plain), (_, escaped), (c, _)] = &read.attributes[..] else { panic!("three") };
    assert!(matches!(a, Cow::Borrowed("a")) && matches!(plain, Cow::Borrowed("plain")));
    assert!(matches!(escaped, Cow::Owned(text) if text == "café"));
    assert!(matches!(c, Cow::Owned(text) if text == "c"));
}

#[test]
fn each_operation_has_its_own_members() {
    let reserve = body(br#"{"attributes": {}, "cost": 5, "ttl": "30s"}"#, Op::Reserve).unwrap();
    assert_eq!((reserve.cost, reserve.ttl_us), (Some(5), Some(30_000_000)));
    let settle = body(br#"{"reservation": "r", "cost": 5}"#, Op::Settle).unwrap();
    assert_eq!(settle.reservation.as_deref(), Some("r"));
    assert!(body(br#"{"reservation": "r"}"#, Op::Cancel).is_ok());

    assert_eq!(
        bad(r#"{"ttl": "30s"}"#, Op::Check),
        at("ttl", Fault::Unknown(MemberSet::for_op(Op::Check)))
    );
    assert_eq!(
        bad(r#"{"reservation": "r"}"#, Op::Peek),
        at("reservation", Fault::Unknown(MemberSet::for_op(Op::Peek)))
    );
    assert_eq!(
        bad(r#"{"reservation": "r"}"#, Op::Reserve),
        at("reservation", Fault::Unknown(MemberSet::for_op(Op::Reserve)))
    );
    assert_eq!(
        bad(r#"{"time": 1}"#, Op::Check),
        at("time", Fault::Unknown(MemberSet::for_op(Op::Check)))
    );
    assert_eq!(
        bad(r#"{"op": "peek"}"#, Op::Check),
        at("op", Fault::Unknown(MemberSet::for_op(Op::Check)))
    );
    assert_eq!(
        bad(r#"{"attributes": {}}"#, Op::Settle),
        at("attributes", Fault::Unknown(MemberSet::for_op(Op::Settle)))
    );
    assert_eq!(
        bad(r#"{"reservation": "r", "cost": 1}"#, Op::Cancel),
        at("cost", Fault::Unknown(MemberSet::for_op(Op::Cancel)))
    );
    assert_eq!(bad(r#"{"cost": 1}"#, Op::Settle), at("reservation", Fault::Missing));
    assert_eq!(bad(r#"{"reservation": "r"}"#, Op::Settle), at("cost", Fault::Missing));
    assert_eq!(bad(r#"{}"#, Op::Cancel), at("reservation", Fault::Missing));
}

#[test]
fn unknown_and_repeated_members_are_named() {
    assert_eq!(
        bad(r#"{"atributes": {}}"#, Op::Check),
        at("atributes", Fault::Unknown(MemberSet::for_op(Op::Check)))
    );
    assert_eq!(bad(r#"{"cost": 1, "cost": 1}"#, Op::Check), at("cost", Fault::Repeated));
    assert_eq!(bad(r#"{"cost": 1, "\u0063ost": 1}"#, Op::Check), at("cost", Fault::Repeated));
    assert_eq!(
        bad(r#"{"attributes": {}, "attributes": {}}"#, Op::Check),
        at("attributes", Fault::Repeated)
    );
    assert_eq!(
        bad(r#"{"attributes": {"a": "1", "b": "2", "a": "1"}}"#, Op::Check),
        at("attributes.a", Fault::Repeated)
    );
}

#[test]
fn a_time_to_live_is_a_duration_of_an_hour_at_most() {
    let ttl = |text: &str| {
        body(format!("{{\"ttl\": \"{text}\"}}").as_bytes(), Op::Reserve)
            .map(|body| body.ttl_us.unwrap())
            .map_err(|error| {
                assert_eq!(error.field.as_deref(), Some("ttl"));
                error.fault
            })
    };
    assert_eq!(ttl("1ms"), Ok(1_000));
    assert_eq!(ttl("1h"), Ok(3_600_000_000));
    assert_eq!(ttl("61m"), Err(Fault::TtlOutOfRange));
    assert_eq!(ttl("0s"), Err(Fault::TtlOutOfRange));
    for text in ["", "30", "30 parsecs", "-1s", "1.5s"] {
        assert!(matches!(ttl(text), Err(Fault::NotADuration(_))), "{text}");
    }
}

#[test]
fn wrong_types_name_their_member() {
    for (input, op, field) in [
        (r#"{"attributes": []}"#, Op::Check, "attributes"),
        (r#"{"attributes": null}"#, Op::Check, "attributes"),
        (r#"{"attributes": {"user": 42}}"#, Op::Check, "attributes.user"),
        (r#"{"attributes": {"user": null}}"#, Op::Check, "attributes.user"),
        (r#"{"attributes": {"user": {"id": "42"}}}"#, Op::Check, "attributes.user"),
        (r#"{"ttl": 30}"#, Op::Reserve, "ttl"),
        (r#"{"reservation": 1}"#, Op::Cancel, "reservation"),
    ] {
        let (found, fault) = bad(input, op);
        assert_eq!(found.as_deref(), Some(field), "{input}");
        assert!(matches!(fault, Fault::Type(_)), "{input}: {fault}");
    }
    for input in ["[]", "\"x\"", "1", "null"] {
        let (field, fault) = bad(input, Op::Check);
        assert!(field.is_none() && matches!(fault, Fault::Type(_)), "{input}: {fault}");
    }
}

#[test]
fn what_is_not_json_is_refused() {
    for input in [
        "",
        " ",
        "{",
        "{}x",
        "{} {}",
        "{'cost': 1}",
        "{\"cost\": 1,}",
        "{\"cost\": 01}",
        "nul",
        "{\"attributes\": {\"a\": \"\u{1}\"}}",
        r#"{"attributes": {"a": "\ud800"}}"#,
        "{\"cost\": NaN}",
    ] {
        assert!(matches!(bad(input, Op::Check).1, Fault::NotJson(_)), "{input}");
    }
    let error = body(b"{\"attributes\": {\"a\": \"\xff\"}}", Op::Check).unwrap_err();
    assert_eq!(error.fault, Fault::NotUtf8(22));
}

#[test]
fn the_caps_hold() {
    let with = |name: &str, value: &str| format!("{{\"attributes\": {{\"{name}\": \"{value}\"}}}}");
    let (name, value) = ("n".repeat(NAME_BYTES_MAX), "v".repeat(VALUE_BYTES_MAX));
    assert!(body(with(&name, &value).as_bytes(), Op::Check).is_ok());
    assert_eq!(
        bad(&with(&format!("{name}n"), ""), Op::Check),
        at("attributes", Fault::NameTooLong)
    );
    assert_eq!(bad(&with("", ""), Op::Check), at("attributes", Fault::NameEmpty));
    assert_eq!(
        bad(&with("a", &format!("{value}v")), Op::Check),
        at("attributes.a", Fault::ValueTooLong)
    );

    let many = |count: usize| {
        let attributes: Vec<_> = (0..count).map(|n| format!("\"a{n}\": \"\"")).collect();
        format!("{{\"attributes\": {{{}}}}}", attributes.join(","))
    };
    assert_eq!(body(many(64).as_bytes(), Op::Check).unwrap().attributes.len(), 64);
    assert_eq!(bad(&many(65), Op::Check), at("attributes", Fault::TooManyAttributes));

    let long = bad(&format!("{{\"{}\": 1}}", "é".repeat(1_000)), Op::Check);
    assert_eq!(long, at(&"é".repeat(128), Fault::Unknown(MemberSet::for_op(Op::Check))));

    let padded = |bytes: usize| format!("{{}}{}", " ".repeat(bytes - 2));
    assert!(body(padded(BODY_BYTES_MAX).as_bytes(), Op::Check).is_ok());
    assert_eq!(bad(&padded(BODY_BYTES_MAX + 1), Op::Check), (None, Fault::TooLarge));

    let cancel = |bytes: usize| format!("{{\"reservation\": \"{}\"}}", "r".repeat(bytes));
    assert!(body(cancel(512).as_bytes(), Op::Cancel).is_ok());
    assert_eq!(bad(&cancel(513), Op::Cancel), at("reservation", Fault::ReservationLength));
    assert_eq!(bad(&cancel(0), Op::Cancel), at("reservation", Fault::ReservationLength));
}

#[test]
fn no_input_nests_the_reader() {
    for open in ["[", "{\"a\":"] {
        let deep = open.repeat(10_000);
        for input in [
            deep.clone(),
            format!("{{\"attributes\": {deep}"),
            format!("{{\"attributes\": {{\"a\": {deep}"),
            format!("{{\"cost\": {deep}"),
            format!("{{\"other\": {deep}"),
        ] {
            assert!(body(input.as_bytes(), Op::Check).is_err());
        }
        assert!(row(format!("{{\"time\": {deep}").as_bytes()).is_err());
    }
}

#[test]
fn a_row_has_an_instant_and_an_operation() {
    let read = row(br#"{"time": 1700000000.25, "attributes": {"user": "42"}, "cost": 2}"#).unwrap();
    assert_eq!(
        (read.time_us, read.op, read.body.cost),
        (1_700_000_000_250_000, Op::Check, Some(2))
    );
    for op in Op::ALL {
        let input = format!(
            r#"{{"op": "{}", "time": 1, "cost": 1, "attributes": {{"user": "42"}}{}}}"#,
            op.as_str(),
            if matches!(op, Op::Check | Op::Peek) { "" } else { r#", "reservation": "r""# },
        );
        assert_eq!(row(input.as_bytes()).unwrap().op, op);
    }
    assert_eq!(bad_row(r#"{"cost": 1}"#), at("time", Fault::Missing));
    assert_eq!(bad_row(r#"{"time": 1, "op": "chek"}"#), at("op", Fault::NoSuchOp));
    assert_eq!(
        bad_row(r#"{"time": 1, "reservation": "r"}"#),
        at("reservation", Fault::NotForThisOp(Op::Check))
    );
    assert_eq!(
        bad_row(r#"{"time": 1, "op": "settle", "reservation": "r", "cost": 1, "ttl": "1s"}"#),
        at("ttl", Fault::NotForThisOp(Op::Settle))
    );
    assert_eq!(bad_row(r#"{"time": 1, "op": "cancel"}"#), at("reservation", Fault::Missing));
    assert_eq!(
        bad_row(r#"{"time": 1, "op": "settle", "reservation": "r"}"#),
        at("cost", Fault::Missing)
    );
}

#[test]
fn time_is_read_from_its_digits() {
    for (text, us) in [
        ("0", 0),
        ("0.0", 0),
        ("0e99999999999999999999", 0),
        ("1", 1_000_000),
        ("0.000001", 1),
        ("1700000000.25", 1_700_000_000_250_000),
        ("1700000000.123457", 1_700_000_000_123_457),
        ("1700000000.1234570000000000000000000", 1_700_000_000_123_457),
        ("9007199254.740991", 9_007_199_254_740_991),
        ("1.7e9", 1_700_000_000_000_000),
        ("1.70000000025E+9", 1_700_000_000_250_000),
        ("17000000002500e-4", 1_700_000_000_250_000),
        ("1000000000000000000000000000000e-30", 1_000_000),
        ("0.000000000000000000000000000001e24", 1),
    ] {
        assert_eq!(time(text), Ok(us), "{text}");
    }
}

#[test]
fn an_instant_that_is_none_says_why() {
    for (text, fault) in [
        ("-1", Fault::TimeNegative),
        ("-0.0", Fault::TimeNegative),
        ("0.0000001", Fault::TimeTooFine),
        ("1700000000.1234567", Fault::TimeTooFine),
        ("1700000000.00000000000000000000000001", Fault::TimeTooFine),
        ("1e-7", Fault::TimeTooFine),
        ("1e-99999999999999999999", Fault::TimeTooFine),
        ("9007199254.740992", Fault::TimeTooLate),
        ("10000000000", Fault::TimeTooLate),
        ("99999999999999999999999999.1", Fault::TimeTooLate),
        ("1e99999999999999999999", Fault::TimeTooLate),
        ("\"1\"", Fault::TimeNotANumber),
        ("null", Fault::TimeNotANumber),
        ("[1]", Fault::TimeNotANumber),
    ] {
        assert_eq!(time(text), Err(fault), "{text}");
    }
    assert!(matches!(time("1."), Err(Fault::NotJson(_))));
    assert!(matches!(time("01"), Err(Fault::NotJson(_))));
}

/// Bodies of mostly valid pieces, so that both readers get far.
fn any_body() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let space = proptest::sample::select(vec!["", "", " ", "\t", "\n", "\u{a0}", "x"]);
    let text = prop_oneof![
        4 => "[a-c]{0,2}",
        1 => "\\PC{0,3}",
        1 => proptest::sample::select(vec!["\\\\n", "\\\\u00e9", "\\\\ud800", "\u{1}", "\"", "\\\\"]).prop_map(String::from),
    ];
    let number = proptest::sample::select(vec![
        "0",
        "1",
        "00",
        "01",
        "-1",
        "1.5",
        "1700000000.25",
        "1.123456",
        "1.1234560",
        "1.1234567",
        "1.",
        ".5",
        "1e3",
        "9007199254.740991",
        "9007199254.740992",
        "99999999999",
        "9999999999999999999",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999",
        "true",
        "\"1\"",
    ]);
    let pair = (text.clone(), text.clone(), space.clone())
        .prop_map(|(name, value, s)| format!("\"{name}\"{s}:{s}\"{value}\""));
    let attributes = (proptest::collection::vec(pair, 0..3), space.clone())
        .prop_map(|(pairs, s)| format!("{{{s}{}{s}}}", pairs.join(",")));
    let member = prop_oneof![
        (Just("time"), number.clone().prop_map(String::from)),
        (Just("cost"), number.prop_map(String::from)),
        (Just("attributes"), attributes),
        (
            Just("op"),
            proptest::sample::select(vec!["\"check\"", "\"reserve\"", "\"x\"", "1"])
                .prop_map(String::from)
        ),
        (Just("reservation"), text.clone().prop_map(|text| format!("\"{text}\""))),
        (Just("ttl"), Just("\"1s\"".to_owned())),
        (Just("other"), Just("1".to_owned())),
    ];
    let members = proptest::collection::vec((member, space.clone()), 0..4);
    (members, space, prop_oneof![9 => Just("}"), 1 => Just(",}"), 1 => Just("}x"), 1 => Just("")])
        .prop_map(|(members, s, end)| {
            let members: Vec<_> = members
                .iter()
                .map(|((name, value), s)| format!("{s}\"{name}\"{s}:{s}{value}{s}"))
                .collect();
            format!("{s}{{{}{end}", members.join(","))
        })
}

proptest::proptest! {
    #[test]
    fn the_reader_agrees_with_its_oracle(input in any_body()) {
        for allowed in [MemberSet::ALL, MemberSet::for_op(Op::Check)] {
            let (read, expected) = (read_into(&input, allowed), oracle::read(&input, allowed));
            proptest::prop_assert_eq!(comparable(read), comparable(expected));
        }
    }
}

#[test]
fn messages_name_the_member_and_the_way_out() {
    let message = |input: &str| row(input.as_bytes()).unwrap_err().to_string();
    assert_eq!(message(r#"{"time": 1, "cost": -1}"#), "`cost`: negative; a cost is 0 or more");
    assert_eq!(
        message(r#"{"time": 1, "attributes": {"user": 42}}"#),
        "`attributes.user`: invalid type: integer `42`, expected a string"
    );
    assert_eq!(
        message(r#"{"time": 1, "op": "chek"}"#),
        "`op`: unknown operation; use one of `check`, `peek`, `reserve`, `settle`, `cancel`"
    );
    let body = body(b"{\n\"cost\": 1", Op::Check).unwrap_err().to_string();
    assert_eq!(body, "not JSON: EOF while parsing an object at line 2 column 9");
    assert_eq!(message("{"), "not JSON: EOF while parsing an object at column 1");
}
