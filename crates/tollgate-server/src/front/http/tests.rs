use super::name;
use tollgate_core::header::Profile;

#[test]
fn every_field_has_a_name_to_send() {
    let fields = Profile::ALL.into_iter().flat_map(|profile| profile.fields().iter().copied());
    for field in fields.chain(["Retry-After", "X-Tollgate-Source", "Another-Field"]) {
        assert_eq!(name::of(field).unwrap().as_str(), field.to_ascii_lowercase());
    }
    assert_eq!(name::of("not a name"), None);
}
