//! One parameter of a query.

/// The raw value of the first parameter of that name; one without `=` has an empty value.
pub(super) fn find<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        is_named(key, name).then_some(value)
    })
}

fn is_named(key: &str, name: &str) -> bool {
    if is_plain(key) {
        return key == name;
    }
    let mut decoded = String::new();
    decode(key, &mut decoded);
    decoded == name
}

/// Whether decoding changes nothing.
pub(super) fn is_plain(text: &str) -> bool {
    !text.bytes().any(|byte| matches!(byte, b'%' | b'+'))
}

/// Appends what the text stands for: `+` is a space, `%41` is `A`, a broken escape is itself.
pub(super) fn decode(text: &str, out: &mut String) {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(match (byte, after) {
            (b'+', _) => b' ',
            (b'%', [high, low, ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    rest = &after[2..];
                    high << 4 | low
                }
                _ => byte,
            },
            _ => byte,
        });
    }
    out.push_str(&String::from_utf8_lossy(&bytes));
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
