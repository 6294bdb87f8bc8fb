use super::*;
use proptest::prelude::*;

/// Arguments and length of a command, or its least length, or its fault.
type Read = Result<(Vec<Vec<u8>>, usize), Result<usize, Malformed>>;

/// Decodes the first command.
fn read(bytes: &[u8]) -> Read {
    let (mut bytes, mut arguments) = (bytes.to_vec(), Arguments::new());
    match next_command(&mut bytes, Caps::AUTHENTICATED, &mut arguments) {
        Ok(DecodeStatus::Complete(size)) => {
            Ok((arguments.into_iter().map(|at| bytes[at].to_vec()).collect(), size))
        }
        Ok(DecodeStatus::Partial(least)) => Err(Ok(least)),
        Err(malformed) => Err(Err(malformed)),
    }
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn array_of(arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[test]
fn arrays_and_lines_are_commands() {
    let cases: [(&str, &[&str]); 16] = [
        ("*1\r\n$4\r\nPING\r\n", &["PING"]),
        ("*2\r\n$4\r\necho\r\n$0\r\n\r\n", &["echo", ""]),
        ("*2\r\n$4\r\necho\r\n$4\r\na\r\nb\r\n", &["echo", "a\r\nb"]),
        ("*0\r\n", &[]),
        ("*-1\r\n", &[]),
        ("\r\n", &[]),
        ("\n", &[]),
        ("  \t \r\n", &[]),
        ("PING\r\n", &["PING"]),
        ("PING\n", &["PING"]),
        (" CL.THROTTLE  k 4 1 1 \r\n", &["CL.THROTTLE", "k", "4", "1", "1"]),
        ("a \"b c\" d\r\n", &["a", "b c", "d"]),
        ("a 'b c' \"\"\r\n", &["a", "b c", ""]),
        ("a \"\\x41\\n\\\"\\q\\x4\"\r\n", &["a", "A\n\"qx4"]),
        ("a 'it\\'s' '\\x41'\r\n", &["a", "it's", "\\x41"]),
        ("a b\"c d\"\r\n", &["a", "bc d"]),
    ];
    for (bytes, expected) in cases {
        assert_eq!(read(bytes.as_bytes()), Ok((words(expected), bytes.len())), "{bytes:?}");
        let more = [bytes.as_bytes(), b"*1\r\n"].concat();
        assert_eq!(read(&more), Ok((words(expected), bytes.len())), "{bytes:?}");
    }
}

#[test]
fn what_is_no_command_is_told_apart() {
    let long = [b"a".repeat(LINE_BYTES_MAX), b"\n".to_vec()].concat();
    let cases: [(&[u8], Malformed); 20] = [
        (b"*x\r\n", Malformed::Count),
        (b"*1x\r\n", Malformed::Count),
        (b"*\r\n", Malformed::Count),
        (b"*1\rx", Malformed::Count),
        (b"*1\n", Malformed::Count),
        (b"*1025\r\n", Malformed::Count),
        (b"*99999999999999999999\r\n", Malformed::Count),
        (b"*1\r\n*1\r\n", Malformed::Argument(b'*')),
        (b"*1\r\n:1\r\n", Malformed::Argument(b':')),
        (b"*1\r\nPING\r\n", Malformed::Argument(b'P')),
        (b"*1\r\n$-1\r\n", Malformed::Length),
        (b"*1\r\n$x\r\n", Malformed::Length),
        (b"*1\r\n$+1\r\n", Malformed::Length),
        (b"*1\r\n$65537\r\n", Malformed::Length),
        (b"*1\r\n$9223372036854775807\r\n", Malformed::Length),
        (b"*1\r\n$1\r\nab\r\n", Malformed::End),
        (b"*1\r\n$1\r\na\n\n", Malformed::End),
        (b"\"a\r\n", Malformed::Quotes),
        (b"'a'b\r\n", Malformed::Quotes),
        (&long, Malformed::Line),
    ];
    for (bytes, malformed) in cases {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
        assert_eq!(read(bytes), Err(Err(malformed)), "{shown:?}");
    }
}

#[test]
fn caps_are_the_last_that_pass() {
    let largest = array_of(&[b"a".repeat(BULK_BYTES_MAX)]);
    assert!(read(&largest).is_ok());
    let many = array_of(&vec![b"a".to_vec(); ARGUMENTS_MAX]);
    assert_eq!(read(&many).map(|(arguments, _)| arguments.len()), Ok(ARGUMENTS_MAX));
    // An oversized argument is refused when its length is read, not when its bytes arrive.
    let mut two = array_of(&[b"a".repeat(BULK_BYTES_MAX), b"a".repeat(BULK_BYTES_MAX)]);
    two.truncate(BULK_BYTES_MAX + 30);
    assert_eq!(read(&two), Err(Err(Malformed::Size)));
    let mut arguments = Arguments::new();
    let stranger = |bytes: &[u8], arguments: &mut Arguments| {
        next_command(&mut bytes.to_vec(), Caps::UNAUTHENTICATED, arguments)
    };
    assert_eq!(stranger(b"*11\r\n", &mut arguments), Err(Malformed::Count));
    assert_eq!(stranger(b"*1\r\n$4097\r\n", &mut arguments), Err(Malformed::Length));
}

#[test]
fn integers_are_read_as_redis_cell_reads_them() {
    let cases = [
        ("0", Some(0)),
        ("007", Some(7)),
        ("+5", Some(5)),
        ("-5", Some(-5)),
        ("999999999999999999", Some(999_999_999_999_999_999)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("", None),
        (" 1", None),
        ("1.0", None),
        ("1e3", None),
        ("--1", None),
        ("\u{661}", None),
    ];
    for (text, expected) in cases {
        assert_eq!(integer(text.as_bytes()), expected, "{text:?}");
    }
    assert_eq!(integer(b"\xff"), None);
}

/// Bytes that are mostly commands.
fn likely() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"*".to_vec()),
        Just(b"$".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"\\x".to_vec()),
        "[0-9]{1,3}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// A part of a command is recognized as partial. Its reported length never exceeds that of the
    /// command.
    #[test]
    fn parts_of_commands_wait_for_the_rest(
        arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 1..6),
        after in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let whole = array_of(&arguments);
        for len in 0..whole.len() {
            match read(&whole[..len]) {
                Err(Ok(least)) => prop_assert!(len < least && least <= whole.len(), "{len} {least}"),
                other => prop_assert!(false, "{other:?} at {len}"),
            }
        }
        prop_assert_eq!(read(&[&whole[..], &after].concat()), Ok((arguments, whole.len())));
    }

    /// For any bytes, more bytes never change the commands decoded so far. A partial command always
    /// needs more bytes than there are.
    #[test]
    fn more_bytes_do_not_change_what_was_read(bytes in likely()) {
        let mut known = None;
        for len in 0..=bytes.len() {
            match read(&bytes[..len]) {
                Err(Ok(least)) => {
                    prop_assert!(known.is_none() && least > len);
                }
                read => {
                    if let Ok((_, size)) = &read {
                        prop_assert!(*size <= len && *size > 0);
                    }
                    prop_assert_eq!(known.get_or_insert(read.clone()), &read);
                }
            }
        }
    }
}
