use super::*;

#[test]
fn only_the_password_is_let_in() {
    let auth = RespAuth::default();
    assert!(!auth.requires_password() && !auth.is_password(b"") && !auth.is_password(b"x"));
    auth.set_password(Some(SecretDigest::new(b"hunter2")));
    assert!(auth.requires_password() && auth.is_password(b"hunter2"));
    for wrong in [&b""[..], b"hunter", b"hunter22", b"Hunter2", b"hunter2\n"] {
        assert!(!auth.is_password(wrong));
    }
    auth.set_password(None);
    assert!(!auth.requires_password());
}
