use super::*;
use tollgate_policy::compile;

fn secret(field: &str) -> Secret {
    let file = compile(format!("resp: {{password: {field}}}").as_bytes()).unwrap();
    file.settings.resp_password.unwrap()
}

#[test]
fn only_the_password_is_let_in() {
    let entrance = RespAuth::default();
    assert!(
        !entrance.requires_password() && !entrance.is_password(b"") && !entrance.is_password(b"x")
    );
    entrance.set_password(Some(RespPassword::resolve(&secret("hunter2"), |_| None).unwrap()));
    assert!(entrance.requires_password() && entrance.is_password(b"hunter2"));
    for wrong in [&b""[..], b"hunter", b"hunter22", b"Hunter2", b"hunter2\n"] {
        assert!(!entrance.is_password(wrong));
    }
    entrance.set_password(None);
    assert!(!entrance.requires_password());
}

#[test]
fn a_password_in_a_variable_is_looked_for_there() {
    let variable = |name: &str| (name == "PW").then(|| OsString::from("hunter2\n"));
    let password = RespPassword::resolve(&secret("{env: PW}"), variable).unwrap();
    assert!(password.matches(b"hunter2") && !password.matches(b"hunter2\n"));
    for missing in ["{env: OTHER}", "{env: EMPTY}"] {
        let error =
            RespPassword::resolve(&secret(missing), |name| (name == "EMPTY").then(OsString::new));
        assert!(error.unwrap_err().to_string().contains("resp.password"));
    }
    assert_eq!(format!("{password:?}"), "Password");
}
