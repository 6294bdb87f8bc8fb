//! Bytes from a hostile Redis client. Nothing panics, and memory is bounded. An independent reader
//! finds the same commands and the same end, wherever the bytes are split.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Only the decoder: the rest of the server would take most of the build time.
#[path = "../../crates/tollgate-server/src/front/resp/decode/mod.rs"]
#[allow(dead_code, unfulfilled_lint_expectations)]
mod decode;

use decode::{
    Arguments, COMMAND_BYTES_MAX, Caps, DecodeStatus, LINE_BYTES_MAX, integer, next_command,
};

/// Commands, and whether the bytes after them are invalid.
type Read = (Vec<Vec<Vec<u8>>>, bool);

fuzz_target!(|input: &[u8]| {
    // The first two bytes say where the others are split.
    let Some((&[high, low], bytes)) = input.split_first_chunk() else { return };
    let cut = usize::from(u16::from_be_bytes([high, low])) % (bytes.len() + 1);
    for caps in [Caps::AUTHENTICATED, Caps::UNAUTHENTICATED] {
        let mut expected = None;
        let cost = allocation_counter::measure(|| expected = Some(read(&[bytes], caps)));
        let bytes_max = 64 * bytes.len() as u64 + 64 * 1024;
        assert!(cost.bytes_max <= bytes_max, "{} bytes for {}", cost.bytes_max, bytes.len());
        let expected = expected.expect("it was just read");
        assert_eq!(expected, model(bytes, caps), "another reader");
        assert_eq!(read(&[&bytes[..cut], &bytes[cut..]], caps), expected, "cut at {cut}");
    }
    let text = std::str::from_utf8(bytes).ok();
    assert_eq!(integer(bytes), text.and_then(|text| text.parse::<i64>().ok()));
});

/// Reads like a connection: keeps a partial command until enough bytes have arrived.
fn read(pieces: &[&[u8]], caps: Caps) -> Read {
    let (mut held, mut least, mut commands) = (Vec::new(), 0, Vec::new());
    let mut arguments = Arguments::new();
    for piece in pieces {
        held.extend_from_slice(piece);
        while held.len() >= least {
            match next_command(&mut held, caps, &mut arguments) {
                Ok(DecodeStatus::Complete(size)) => {
                    assert!(size >= least && size <= held.len() && size <= COMMAND_BYTES_MAX);
                    assert!(arguments.len() <= caps.arguments_max);
                    assert!(arguments.iter().all(|at| at.end <= size));
                    let command: Vec<_> =
                        arguments.iter().map(|at| held[at.clone()].to_vec()).collect();
                    if !command.is_empty() {
                        commands.push(command);
                    }
                    held.drain(..size);
                    least = 0;
                }
                Ok(DecodeStatus::Partial(part)) => {
                    assert!(part > held.len(), "it waits for what is there");
                    least = part;
                }
                Err(malformed) => {
                    assert!(malformed.to_string().len() < 100);
                    return (commands, true);
                }
            }
        }
    }
    (commands, false)
}

/// The independent reader: copies everything, starts again for each command, and keeps no
/// positions.
fn model(mut bytes: &[u8], caps: Caps) -> Read {
    let mut commands = Vec::new();
    loop {
        let read = match bytes.first() {
            None => return (commands, false),
            Some(b'*') => array(bytes, caps),
            Some(_) => line(bytes, caps),
        };
        match read {
            Whole(command, rest) => {
                commands.extend(Some(command).filter(|command| !command.is_empty()));
                bytes = rest;
            }
            Part => return (commands, false),
            Bad => return (commands, true),
        }
    }
}

enum Found<'a, T> {
    Whole(T, &'a [u8]),
    Part,
    Bad,
}
use Found::{Bad, Part, Whole};

fn array(bytes: &[u8], caps: Caps) -> Found<'_, Vec<Vec<u8>>> {
    let (count, mut rest) = match number(&bytes[1..]) {
        Whole(count, rest) => (count, rest),
        Part => return Part,
        Bad => return Bad,
    };
    if count > caps.arguments_max as i64 {
        return Bad;
    }
    let mut command = Vec::new();
    while (command.len() as i64) < count {
        let (length, after) = match rest.split_first() {
            None => return Part,
            Some((b'$', after)) => match number(after) {
                Whole(length, after) => (length, after),
                Part => return Part,
                Bad => return Bad,
            },
            Some(_) => return Bad,
        };
        if length < 0 || length > caps.bulk_bytes_max as i64 {
            return Bad;
        }
        let Some((text, after)) = after.split_at_checked(length as usize) else { return Part };
        match after {
            [b'\r', b'\n', after @ ..] => rest = after,
            [_, _, ..] => return Bad,
            _ => return Part,
        }
        command.push(text.to_vec());
    }
    Whole(command, rest)
}

/// Up to fifteen digits, possibly negative, and a line end.
fn number(bytes: &[u8]) -> Found<'_, i64> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = if digits.len() < bytes.len() { "-" } else { "" };
    match &digits[count..] {
        _ if count > 15 => Bad,
        [] | [b'\r'] if count > 0 || digits.is_empty() => Part,
        [b'\r', b'\n', rest @ ..] if count > 0 => {
            let text = format!("{sign}{}", String::from_utf8_lossy(&digits[..count]));
            text.parse().map_or(Bad, |value| Whole(value, rest))
        }
        _ => Bad,
    }
}

fn line(bytes: &[u8], caps: Caps) -> Found<'_, Vec<Vec<u8>>> {
    let most = LINE_BYTES_MAX.min(caps.bulk_bytes_max);
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n').filter(|end| *end < most) else {
        return if bytes.len() >= most { Bad } else { Part };
    };
    let mut text: std::collections::VecDeque<u8> = bytes[..end].iter().copied().collect();
    let is_space = |byte: u8| b" \t\r\x0b\x0c".contains(&byte);
    let mut command = Vec::new();
    loop {
        while text.front().is_some_and(|byte| is_space(*byte)) {
            text.pop_front();
        }
        if text.is_empty() {
            return Whole(command, &bytes[end + 1..]);
        }
        if command.len() == caps.arguments_max {
            return Bad;
        }
        let mut word = Vec::new();
        while let Some(byte) = text.pop_front() {
            match byte {
                b'"' | b'\'' => {
                    if !quoted(byte, &mut text, &mut word)
                        || text.front().is_some_and(|byte| !is_space(*byte))
                    {
                        return Bad;
                    }
                    break;
                }
                byte if is_space(byte) => break,
                byte => word.push(byte),
            }
        }
        command.push(word);
    }
}

/// The rest of a quoted word; `false` if the quote is not closed.
fn quoted(mark: u8, text: &mut std::collections::VecDeque<u8>, word: &mut Vec<u8>) -> bool {
    loop {
        let two = [text.get(2), text.get(3)].map(|byte| byte.copied().unwrap_or(0));
        match (mark, text.pop_front(), text.front().copied()) {
            (_, None, _) => return false,
            (mark, Some(byte), _) if byte == mark => return true,
            (b'"', Some(b'\\'), Some(b'x')) if two.iter().all(u8::is_ascii_hexdigit) => {
                let hex = String::from_utf8_lossy(&two).into_owned();
                word.push(u8::from_str_radix(&hex, 16).expect("two digits"));
                text.drain(..3);
            }
            (b'"', Some(b'\\'), Some(escaped)) => {
                let known = [(b'n', b'\n'), (b'r', b'\r'), (b't', b'\t'), (b'b', 8), (b'a', 7)];
                let meant = known.iter().find(|(letter, _)| *letter == escaped);
                word.push(meant.map_or(escaped, |(_, meant)| *meant));
                text.pop_front();
            }
            (b'"', Some(b'\\'), None) => return false,
            (b'\'', Some(b'\\'), Some(b'\'')) => {
                word.push(b'\'');
                text.pop_front();
            }
            (_, Some(byte), _) => word.push(byte),
        }
    }
}
