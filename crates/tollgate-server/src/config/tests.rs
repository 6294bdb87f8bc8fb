use super::{Config, ConfigError, ConfigErrorKind, DEFAULT, ListenOverride};
use tollgate_policy::settings::{Front, Listener};

fn load(text: &str) -> Result<Vec<Listener>, ConfigError> {
    Config::file("tollgate.yaml")
        .parse(text.into())
        .map(|loaded| loaded.compiled.settings.listeners)
}

#[test]
fn the_built_in_policy_has_no_finding_and_the_documented_addresses() {
    let compiled = tollgate_policy::compile(DEFAULT.as_bytes()).unwrap();
    assert_eq!(tollgate_policy::lint(&compiled), []);
    let config = Config::built_in();
    let loaded = config.load().unwrap();
    let addresses: Vec<String> =
        loaded.compiled.settings.listeners.iter().map(|one| one.address.to_string()).collect();
    assert_eq!(addresses, ["127.0.0.1:8081", "127.0.0.1:8090"]);
    assert_eq!(
        load("").unwrap(),
        loaded.compiled.settings.listeners,
        "an empty file says the same"
    );
}

#[test]
fn an_error_reads_as_check_shows_it() {
    let error = load("limits: [{name: a, rate: 5/min, algoritm: gcra}]").unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("tollgate.yaml:1:33: error[TG002]: unknown field `algoritm`"),
        "{text}"
    );
    assert!(text.contains("\nhelp: ") && error.is_invalid());
    let missing = Config::file("no/such/file.yaml").load().unwrap_err();
    assert!(missing.to_string().starts_with("cannot read no/such/file.yaml: "), "{missing}");
    assert!(!missing.is_invalid());
}

#[test]
fn a_listener_can_be_moved_and_added() {
    let at = |text: &str| text.parse::<ListenOverride>().unwrap();
    let config =
        Config::file("a.yaml").listen(at("http=127.0.0.1:1")).listen(at("http=127.0.0.1:2"));
    let listeners = |text: &str| config.parse(text.into()).unwrap().compiled.settings.listeners;
    let moved = listeners("listen: {http: '127.0.0.1:8081', admin: '127.0.0.1:8090'}");
    assert_eq!(moved.len(), 2);
    let http = |listeners: &[Listener]| {
        let found = listeners.iter().find(|listener| listener.front == Front::Http);
        found.unwrap().address.port()
    };
    assert_eq!(http(&moved), 2, "the last counts");
    assert_eq!(http(&listeners("listen: {admin: '127.0.0.1:8090'}")), 2);
    for (wrong, help) in [
        ("", "such as http=127.0.0.1:8081"),
        ("http", "such as http=127.0.0.1:8081"),
        ("htp=127.0.0.1:1", "the front ends are gateway, http, grpc, resp, admin"),
        ("http=8081", "write `0.0.0.0:8081`"),
    ] {
        let error = wrong.parse::<ListenOverride>().unwrap_err().to_string();
        assert!(error.contains(help), "{error}");
    }
    assert!(
        "http=localhost:1".parse::<ListenOverride>().is_ok(),
        "a name is looked up at the start"
    );
}

#[test]
fn keys_are_read_with_the_file_that_names_them() {
    let missing = load("jwt: {keys: not-there.json}").unwrap_err();
    assert!(
        matches!(&missing.kind, ConfigErrorKind::NamedFile(..) if missing.file.ends_with("not-there.json")),
        "{missing}"
    );
    let start = "tollgate.yaml:1:13: error[TG071]: cannot read not-there.json: ";
    assert!(missing.to_string().starts_with(start), "{missing}");
}
