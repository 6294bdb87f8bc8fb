use super::*;
use tollgate_policy::compile;

fn secret(field: &str) -> Secret {
    let file = compile(format!("resp: {{password: {field}}}").as_bytes()).unwrap();
    file.settings.resp_password.unwrap()
}

#[test]
fn only_the_password_is_let_in() {
    let entrance = Entrance::default();
    assert!(!entrance.is_guarded() && !entrance.admits(b"") && !entrance.admits(b"x"));
    entrance.set(Some(Password::resolve(&secret("hunter2"), |_| None).unwrap()));
    assert!(entrance.is_guarded() && entrance.admits(b"hunter2"));
    for wrong in [&b""[..], b"hunter", b"hunter22", b"Hunter2", b"hunter2\n"] {
        assert!(!entrance.admits(wrong));
    }
    entrance.set(None);
    assert!(!entrance.is_guarded());
}

#[test]
fn a_password_in_a_variable_is_looked_for_there() {
    let variable = |name: &str| (name == "PW").then(|| OsString::from("hunter2\n"));
    let password = Password::resolve(&secret("{env: PW}"), variable).unwrap();
    assert!(password.is(b"hunter2") && !password.is(b"hunter2\n"));
    for missing in ["{env: OTHER}", "{env: EMPTY}"] {
        let error =
            Password::resolve(&secret(missing), |name| (name == "EMPTY").then(OsString::new));
        assert!(error.unwrap_err().to_string().contains("resp.password"));
    }
    assert_eq!(format!("{password:?}"), "Password");
}
