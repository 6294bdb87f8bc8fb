//! Any bytes as an access log. Nothing panics, values and times stay within bounds, and reading a
//! line twice gives the same result. The first byte says whether the first line is a template.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_logs::{Entry, FORMATS, Field, LineKind, ReadOptions};

/// The last instant at which a limit can decide.
const MAX_US: u64 = (1 << 53) - 1;
const FIELDS: [Field; 10] = [
    Field::Ip,
    Field::Method,
    Field::Path,
    Field::Query,
    Field::Host,
    Field::User,
    Field::UserAgent,
    Field::Referer,
    Field::ForwardedFor,
    Field::Cookie,
];

fuzz_target!(|input: &[u8]| {
    let Some((first, rest)) = input.split_first() else { return };
    let Ok(text) = str::from_utf8(rest) else { return };
    let names = ["header.x-api-key", "tenant"].map(String::from).to_vec();
    let columns = [("tenant", "request.1"), ("tenant", "tenant")];
    let columns = columns.map(|(name, column)| (name.into(), column.into())).to_vec();
    let mut options = ReadOptions::new(names, columns);
    // Some inputs start with a template of their lines.
    let mut lines = text.lines();
    if first % 4 == 0 {
        options.template = lines.next().map(String::from);
    }
    for format in FORMATS {
        let (Ok(mut one), Ok(mut two)) = ((format.build)(&options), (format.build)(&options)) else {
            continue;
        };
        for line in lines.clone() {
            let (mut entry, mut again) = (Entry::default(), Entry::default());
            let read = one.read(line, &mut entry);
            assert_eq!(read, two.read(line, &mut again));
            assert_eq!(format!("{entry:?}"), format!("{again:?}"));
            if read == Ok(LineKind::Request) {
                assert!(entry.time_us <= MAX_US, "{}: {}", format.name, entry.time_us);
                for field in FIELDS {
                    // A decoded byte that is not UTF-8 becomes three bytes.
                    assert!(entry.value(field).len() <= 3 * line.len() + 1);
                }
            }
        }
    }
});
