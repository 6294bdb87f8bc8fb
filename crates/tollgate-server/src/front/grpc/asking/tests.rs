use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use wire::{Entry, RateLimitDescriptor, UInt64Value};

fn requests() -> impl Strategy<Value = RateLimitRequest> {
    let entry = ("\\PC{0,12}", "\\PC{0,200}").prop_map(|(key, value)| Entry { key, value });
    // Numbers of ten bytes are left to the other reader.
    let limit = (any::<u32>(), 0..=i32::MAX)
        .prop_map(|(requests_per_unit, unit)| Override { requests_per_unit, unit });
    let addend = (0..=u64::MAX / 2).prop_map(|value| UInt64Value { value });
    let descriptor =
        (
            vec(entry, 0..6),
            proptest::option::of(limit),
            proptest::option::of(addend),
            any::<bool>(),
        )
            .prop_map(|(entries, limit, hits_addend, is_negative_hits)| {
                RateLimitDescriptor { entries, limit, hits_addend, is_negative_hits }
            });
    ("\\PC{0,9}", vec(descriptor, 0..5), any::<u32>()).prop_map(
        |(domain, descriptors, hits_addend)| RateLimitRequest { domain, descriptors, hits_addend },
    )
}

proptest! {
    #[test]
    fn a_message_is_read_as_it_was_written(request in requests()) {
        let bytes = request.encode_to_vec();
        prop_assert_eq!(read(&bytes), Some(Asking::of(&request)));
    }

    /// What is read from bytes that nobody would write is what the other reader makes of them; it takes more, and never less.
    #[test]
    fn other_bytes_are_read_alike_or_not_at_all(
        request in requests(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = request.encode_to_vec();
        bytes.push(0x18);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        let request = RateLimitRequest::decode(&bytes[..]);
        if let Some(asking) = read(&bytes) {
            prop_assert_eq!(asking, Asking::of(request.as_ref().unwrap()));
        }
    }
}

#[test]
fn what_is_unusual_is_left_to_the_other_reader() {
    let wanted = RateLimitRequest {
        domain: "edge".into(),
        descriptors: vec![RateLimitDescriptor {
            limit: Some(Override { requests_per_unit: 5, unit: 2 }),
            ..Default::default()
        }],
        hits_addend: 0,
    };
    // The limit in two pieces; a field that is not known; a length in two bytes; a number with ten; and half of a tag.
    let pieces = b"\x0a\x04edge\x12\x08\x12\x02\x08\x05\x12\x02\x10\x02";
    let unknown = b"\x0a\x04edge\x7a\x01!\x12\x06\x12\x04\x08\x05\x10\x02";
    for bytes in [&pieces[..], unknown] {
        assert_eq!(RateLimitRequest::decode(bytes).unwrap(), wanted);
        assert_eq!(read(bytes), None);
    }
    assert_eq!(read(b"\x0a\x84\x00edge").map(|asking| asking.domain), Some("edge"));
    assert_eq!(read(b"\x18\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00"), None);
    assert_eq!(read(b"\x0a\x02\xff\xfe"), None);
    assert_eq!(read(b"\x0a"), None);
}

#[test]
fn more_than_is_taken_is_not_read_and_still_refused() {
    for (descriptors, entries) in [(DESCRIPTORS_MAX + 50, 1), (1, ENTRIES_MAX + 50)] {
        let entry = Entry { key: "a".into(), value: String::new() };
        let one = RateLimitDescriptor { entries: vec![entry; entries], ..Default::default() };
        let request = RateLimitRequest {
            domain: "edge".into(),
            descriptors: vec![one; descriptors],
            hits_addend: 0,
        };
        assert_eq!(read(&request.encode_to_vec()), None);
        assert!(super::super::decode::check(&Asking::of(&request)).is_err());
    }
}
