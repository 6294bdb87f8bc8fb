//! Header values from a hostile peer. Nothing panics, and caps hold. Accepted values can be written
//! in canonical form, and read back unchanged. Lines of the input are header lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tollgate_core::header::{
    FieldInstant, HeaderLines, LimitItem, MAX_MEMBERS, Profile, Row, parse, parse_policy,
    parse_ratelimit, parse_retry_after, render,
};
use tollgate_core::{Algorithm, Intent, Rate, algorithm::FixedWindow};

fuzz_target!(|text: &str| {
    let lines = || text.split('\n');
    if let Ok(limits) = parse_ratelimit(lines()) {
        assert!(limits.len() <= MAX_MEMBERS);
        written_again(&limits);
    }
    if let Ok(policies) = parse_policy(lines()) {
        assert!(policies.len() <= MAX_MEMBERS);
        assert!(policies.iter().all(|policy| policy.window_s != Some(0)));
    }
    let _ = parse_retry_after(text, 1_794_744_000_000_000);
    for profile in Profile::ALL {
        // Each line is the value of the next header, wrapping around, so that lists get several
        // lines.
        let headers = profile.fields().iter().copied().cycle().zip(lines());
        if let Ok(parsed) = parse(profile, headers) {
            assert!(parsed.limits.len() <= MAX_MEMBERS);
        }
    }
});

fn written_again(limits: &[LimitItem]) {
    let end = Some(FieldInstant::AfterUs(u64::MAX));
    if limits.iter().any(|item| item.name.is_none() || item.reset == end) {
        return;
    }
    let Ok(rate) = Rate::try_new(1, 1_000_000) else { return };
    let outcome = FixedWindow::new(rate).decide(&Default::default(), 0, 1, Intent::Take);
    let rows: Vec<Row<'_>> = limits
        .iter()
        .map(|item| {
            let mut row = Row::new(item.name.as_deref().unwrap_or_default(), None, &outcome);
            row.remaining = item.remaining;
            row.more_after_us = item.reset.map(|reset| reset.after_us(0));
            row.partition = item.partition.as_deref();
            row
        })
        .collect();
    let mut fields = HeaderLines::new();
    render(Profile::Draft11, &rows, 0, &mut fields);
    let values = fields.iter().filter(|(name, _)| *name == "RateLimit").map(|(_, value)| value);
    assert_eq!(parse_ratelimit(values).as_deref(), Ok(limits));
}
