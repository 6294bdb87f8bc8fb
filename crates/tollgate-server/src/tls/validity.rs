//! Validity period of a certificate. rustls checks the certificates of peers, not our own.

#[cfg(test)]
mod tests;

/// A validity period, in seconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) from_s: i64,
    pub(super) until_s: i64,
}

impl Validity {
    /// The validity period of a certificate in DER.
    pub(super) fn of(der: &[u8]) -> Option<Self> {
        let (0x30, certificate, _) = take_der(der)? else { return None };
        let (0x30, mut rest, _) = take_der(certificate)? else { return None };
        // The optional version, then the serial number, the algorithm and the issuer.
        if let (0xa0, _, after) = take_der(rest)? {
            rest = after;
        }
        for _ in 0..3 {
            rest = take_der(rest)?.2;
        }
        let (0x30, dates, _) = take_der(rest)? else { return None };
        let (tag, from, dates) = take_der(dates)?;
        let from_s = seconds(tag, from)?;
        let (tag, until, _) = take_der(dates)?;
        Some(Self { from_s, until_s: seconds(tag, until)? })
    }

    /// The problem at this time, if any.
    pub(super) fn problem_at(self, now_us: u64) -> Option<&'static str> {
        let now_s = i64::try_from(now_us / 1_000_000).unwrap_or(i64::MAX);
        match now_s {
            _ if now_s > self.until_s => Some("has expired"),
            _ if now_s < self.from_s => Some("is not valid yet"),
            _ => None,
        }
    }
}

/// The tag and the content of an element, and the bytes after it.
fn take_der(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Parses `YYMMDDHHMMSSZ`, or the form with four digits of the year (RFC 5280, 4.1.2.5).
fn seconds(tag: u8, text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    let mut pairs = digits.chunks(2).map(|pair| match pair {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
        }
        _ => None,
    });
    let mut next = || pairs.next().flatten();
    let year = match (tag, digits.len()) {
        (0x17, 12) => match next()? {
            year @ 50.. => 1900 + year,
            year => 2000 + year,
        },
        (0x18, 14) => next()? * 100 + next()?,
        _ => return None,
    };
    let (month, day) = (next()?, next()?);
    let (hour, minute, second) = (next()?, next()?, next()?);
    let days = tollgate_core::days_from_civil(year, month, day)?;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}
