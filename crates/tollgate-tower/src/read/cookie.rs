//! One cookie among all.

/// The value of the first cookie of that name, over all lines. Quotes around it are not part of it.
pub(super) fn find<'a>(lines: impl Iterator<Item = &'a [u8]>, name: &str) -> Option<&'a [u8]> {
    let pairs = lines.flat_map(|line| line.split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
    let mut named = pairs.filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        (pair[..at].trim_ascii_end() == name.as_bytes()).then(|| pair[at + 1..].trim_ascii_start())
    });
    named.next().map(|value| match value {
        [b'"', inner @ .., b'"'] => inner,
        value => value,
    })
}
