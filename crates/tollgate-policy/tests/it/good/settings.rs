//! Settings of valid files.

use super::good;
use std::time::Duration;
use tollgate_policy::Compiled;
use tollgate_policy::address::ClientAddressSource;
use tollgate_policy::limit::{OnInvalid, OnStoreFailure};
use tollgate_policy::settings::{
    AccessFormat, AttributeSource, Front, JwtAlgorithm, LogSink, Redis, RedisServer, Secret,
    SecretSource, Settings, Store, TierSource, Tls, UpstreamProtocol,
};

fn redis(settings: &Settings) -> &Redis {
    match &settings.store {
        Store::Redis(redis) => redis,
        other => panic!("{other:?}"),
    }
}

fn listeners(settings: &Settings) -> Vec<(Front, String)> {
    let shown = |listener: &tollgate_policy::settings::Listener| {
        (listener.front, listener.address.to_string())
    };
    settings.listeners.iter().map(shown).collect()
}

#[test]
fn everything_has_a_default() {
    for name in ["empty", "nothing-after-fields"] {
        let compiled = good(name);
        let settings = compiled.settings;
        assert!(compiled.limits.is_empty());
        assert_eq!(
            listeners(&settings),
            [(Front::Http, "127.0.0.1:8081".into()), (Front::Admin, "127.0.0.1:8090".into())]
        );
        assert!(matches!(settings.store, Store::Memory { max_bytes: 268_435_456 }));
        assert_eq!(settings.on_store_failure, OnStoreFailure::Open);
        assert!(settings.client_address.trusted().is_empty() && settings.upstream.is_empty());
        assert_eq!(
            settings.client_address.source,
            ClientAddressSource::Header("x-forwarded-for".into())
        );
        assert_eq!(settings.client_address.ipv6_prefix, 64);
        assert_eq!(settings.headers, ["draft-11", "x-ratelimit-epoch"]);
        assert_eq!(settings.drain, Duration::from_secs(10));
        assert!(settings.jwt.is_none() && settings.envoy.configs.is_empty());
        assert!(settings.admin_token.is_none() && settings.admin_audit.is_none());
        assert!(settings.lint_allow.is_empty() && settings.keys_secret.is_none());
        assert!(settings.tiers.default.is_none() && settings.tiers.source.is_none());
    }
}

#[test]
fn the_example_of_the_design() {
    let settings = good("design").settings;
    let ports: Vec<u16> = settings.listeners.iter().map(|l| l.address.port()).collect();
    assert_eq!(ports, [8080, 8081, 8082, 6380, 8090]);
    assert_eq!((&*settings.upstream[0].host, settings.upstream[0].port), ("127.0.0.1", 3000));
    assert_eq!(settings.client_address.trusted(), ["127.0.0.0/8".parse().unwrap()]);
    assert_eq!(settings.identity[0], ("user".into(), AttributeSource::Header("x-user-id".into())));
    assert_eq!(settings.jwt.unwrap().algorithms, [JwtAlgorithm::Es256]);
    assert_eq!(settings.tiers.source, Some(TierSource::Attribute("header.x-plan".into())));
    assert!(!settings.envoy.strict);
}

#[test]
fn records() {
    let settings = good("records").settings;
    let decisions = settings.logs.decisions.unwrap();
    assert_eq!((decisions.refused_only, decisions.sample_ppm), (false, 500));
    let file = LogSink::File { path: "decisions.jsonl".into(), bytes_max: 1 << 20, keep: 2 };
    assert_eq!(decisions.sink, file);
    let access = settings.logs.access.unwrap();
    assert_eq!((access.format, access.sink), (AccessFormat::Json, LogSink::Stderr));
    let usage = settings.usage.unwrap();
    assert_eq!((&*usage.file, usage.every), ("usage.jsonl", Duration::from_secs(10)));
    assert_eq!((usage.fsync, usage.bytes_max, usage.keys_max), (true, 64 << 20, 5_000));
    assert_eq!(usage.age_max, Duration::from_secs(3_600));

    let text = b"log: {decisions: {}, access: {}}\nusage: {file: u}";
    let settings = tollgate_policy::compile(text).unwrap().settings;
    let decisions = settings.logs.decisions.unwrap();
    assert_eq!((decisions.refused_only, decisions.sample_ppm), (true, 1_000_000));
    assert_eq!(decisions.sink, LogSink::Stderr);
    assert_eq!(settings.logs.access.unwrap().format, AccessFormat::Combined);
    let usage = settings.usage.unwrap();
    assert_eq!((usage.every, usage.fsync), (Duration::from_secs(60), false));
    let off = tollgate_policy::compile(b"log: {decisions: {to: none}}").unwrap().settings;
    assert!(off.logs.decisions.is_none() && off.usage.is_none());
}

#[test]
fn front_ends() {
    let settings = good("listen").settings;
    assert_eq!(
        listeners(&settings),
        [
            (Front::Gateway, "[::1]:8080".into()),
            (Front::Http, "127.0.0.1:0".into()),
            (Front::Grpc, "127.0.0.1:0".into()),
            (Front::Resp, "127.0.0.1:0".into()),
            (Front::Admin, "0.0.0.0:9000".into()),
        ]
    );
    let upstreams: Vec<(bool, &str, u16)> =
        settings.upstream.iter().map(|up| (up.tls, &*up.host, up.port)).collect();
    assert_eq!(
        upstreams,
        [(false, "127.0.0.1", 3000), (true, "::1", 443), (false, "backend.internal", 8000)]
    );
    let proxies: Vec<String> =
        settings.client_address.trusted().iter().map(ToString::to_string).collect();
    assert_eq!(proxies, ["127.0.0.0/8", "10.1.2.3/32", "192.168.0.0/16"]);
    assert_eq!(settings.client_address.source, ClientAddressSource::Hops(2));
    assert_eq!(settings.client_address.ipv6_prefix, 56);
    assert_eq!(settings.headers, ["draft-7", "github"]);
    let token = settings.admin_token.unwrap();
    assert!(matches!(token.expose(), SecretSource::Env(name) if &**name == "TOLLGATE_ADMIN_TOKEN"));
    let password = settings.resp_password.unwrap();
    assert!(
        matches!(password.expose(), SecretSource::Env(name) if &**name == "TOLLGATE_RESP_PASSWORD")
    );
    assert_eq!(settings.admin_audit.as_deref(), Some("audit.jsonl"));
    assert_eq!(settings.lint_allow, ["TG101".into(), "TG110".into()]);
    let envoy = settings.envoy;
    assert_eq!((envoy.configs, envoy.strict), (vec!["ratelimit/*.yaml".into()], true));
    assert_eq!(settings.drain, Duration::from_secs(30));
}

#[test]
fn envoy() {
    let settings = good("envoy").settings;
    assert_eq!(listeners(&settings), [(Front::Grpc, "127.0.0.1:8081".into())]);
    let tls = settings.grpc_tls.unwrap();
    assert_eq!((&*tls.cert, &*tls.key), ("rls.pem", "rls.key"));
    assert_eq!(tls.client_ca.as_deref(), Some("envoys.pem"));
    assert_eq!(tls.client_names, ["envoy.internal".into(), "10.1.2.3".into()]);
    let told = (settings.envoy.rate_limited_status, settings.envoy.dynamic_metadata);
    assert_eq!(told, (503, false));
    assert!(settings.envoy.configs.is_empty() && settings.envoy.strict);

    let usual = good("listen").settings;
    let told = (usual.envoy.rate_limited_status, usual.envoy.dynamic_metadata);
    assert_eq!(told, (429, true));
    assert!(usual.grpc_tls.is_none());
}

#[test]
fn gateway() {
    let settings = good("gateway").settings;
    assert_eq!(listeners(&settings), [(Front::Gateway, "0.0.0.0:8443".into())]);
    assert_eq!(settings.upstream.len(), 2);
    let gateway = settings.gateway;
    let tls = gateway.tls.unwrap();
    assert_eq!((&*tls.cert, &*tls.key, tls.client_ca), ("site.pem", "site.key", None));
    assert!(gateway.proxy_protocol && gateway.round_robin && gateway.own_host);
    let times = [gateway.connect, gateway.response, gateway.idle];
    assert_eq!(times, [1, 30, 120].map(Duration::from_secs));
    let identity = Some(("me.pem".into(), "me.key".into()));
    assert_eq!(gateway.upstream_tls, Tls { ca: Some("ca.pem".into()), identity });
    assert_eq!((gateway.idle_connections, gateway.protocol), (8, UpstreamProtocol::Auto));
    let times = [gateway.client_head, gateway.client_body, gateway.client_idle];
    assert_eq!(times, [5, 20, 180].map(Duration::from_secs));
    let health = gateway.health.unwrap();
    assert_eq!(&*health.path, "/healthz?deep=1");
    assert_eq!(
        (health.interval, health.timeout),
        (Duration::from_secs(2), Duration::from_millis(500))
    );
    assert_eq!((health.unhealthy_after, health.healthy_after), (3, 1));

    let usual = good("listen").settings.gateway;
    assert!(usual.tls.is_none() && !usual.proxy_protocol && usual.health.is_none());
    assert!(!usual.round_robin && !usual.own_host && usual.idle_connections == 128);
    let times = [usual.connect, usual.response, usual.idle];
    assert_eq!(times, [5, 60, 60].map(Duration::from_secs));
    let times = [usual.client_head, usual.client_body, usual.client_idle];
    assert_eq!(times, [10, 10, 60].map(Duration::from_secs));
    assert_eq!(usual.protocol, UpstreamProtocol::Http1);
}

#[test]
fn tokens_that_do_not_verify() {
    let Compiled { settings, limits, .. } = good("tokens");
    assert_eq!(settings.jwt.unwrap().leeway_us, 30_000_000);
    assert_eq!(settings.admin_hosts, ["tollgate.example.com".into(), "*.corp.example".into()]);
    let invalid: Vec<OnInvalid> = limits.iter().map(|(limit, _)| limit.on_invalid).collect();
    assert_eq!(invalid, [OnInvalid::Refuse, OnInvalid::Refuse, OnInvalid::AsMissing]);
}

#[test]
fn identity_and_tokens() {
    let settings = good("identity").settings;
    assert_eq!(
        settings.identity,
        [
            ("user".into(), AttributeSource::Jwt("sub".into())),
            ("api_key".into(), AttributeSource::Header("x-api-key".into())),
            ("session".into(), AttributeSource::Cookie("SID".into())),
            ("page".into(), AttributeSource::Query("Page".into())),
        ]
    );
    let jwt = settings.jwt.unwrap();
    assert_eq!(jwt.algorithms.len(), 4);
    assert_eq!(
        (&*jwt.keys, jwt.issuer.as_deref(), jwt.audience.as_deref()),
        ("jwks.json", Some("i"), Some("a"))
    );
    let file = TierSource::File { path: "tiers.yaml".into(), by: None };
    assert_eq!(settings.tiers.source, Some(file));
    assert_eq!(settings.headers, ["none"]);
}

#[test]
fn stores() {
    assert!(matches!(good("memory").settings.store, Store::Memory { max_bytes: 67_108_864 }));
    let settings = good("redis").settings;
    let own = redis(&settings);
    let server = RedisServer::Tcp { host: "redis.internal".into(), port: 6380, database: 2 };
    assert_eq!(own.server, server);
    assert_eq!(own.username.as_deref(), Some("app"));
    let password = own.password.as_ref().unwrap().expose();
    assert!(matches!(password, SecretSource::Literal(text) if &**text == "12345"));
    assert!(is_variable(&own.secret, "KEY_SECRET"));
    let identity = Some(("c.pem".into(), "k.pem".into()));
    assert_eq!(own.tls, Some(Tls { ca: Some("ca.pem".into()), identity }));
    assert_eq!((&*own.prefix, own.caller_time), ("shop", true));
    assert_eq!(
        (own.deadline, own.breaker_probe),
        (Duration::from_millis(50), Duration::from_millis(200))
    );
    assert_eq!((own.connections, own.in_flight, own.breaker_errors), (4, 500, 3));
    assert!(own.replica_reads);
    assert_eq!((own.deny_cache_entries, own.deny_cache_max_age), (0, Duration::from_millis(500)));
    let by_user = TierSource::Redis { hash: "plans".into(), by: "user".into() };
    assert_eq!(settings.tiers.source, Some(by_user));
}

fn is_variable(secret: &Option<Secret>, name: &str) -> bool {
    let source = secret.as_ref().map(Secret::expose);
    matches!(source, Some(SecretSource::Env(variable)) if &**variable == name)
}

#[test]
fn redis_forms_and_defaults() {
    let settings = good("redis-unix").settings;
    let own = redis(&settings);
    assert_eq!(own.server, RedisServer::Unix { path: "/run/redis.sock".into(), database: 0 });
    assert_eq!((&*own.prefix, own.caller_time, own.tls.is_none()), ("tg", false, true));
    assert_eq!(
        (own.deadline, own.breaker_probe),
        (Duration::from_millis(25), Duration::from_millis(500))
    );
    assert_eq!((own.connections, own.in_flight, own.breaker_errors), (2, 10_000, 5));
    assert!(!own.replica_reads);
    assert_eq!((own.deny_cache_entries, own.deny_cache_max_age), (100_000, Duration::from_secs(1)));
    let settings = good("redis-sentinel").settings;
    let own = redis(&settings);
    let nodes = vec![("a".into(), 26379), ("::1".into(), 26379)];
    let RedisServer::Sentinel { master, nodes: found, username, password } = &own.server else {
        panic!("{:?}", own.server);
    };
    assert_eq!((&**master, found, username.as_deref()), ("m", &nodes, Some("s")));
    assert!(is_variable(password, "SENTINEL_PASSWORD") && own.secret.is_none());
    assert_eq!((own.username.as_deref(), own.tls.is_some()), (Some("u"), true));
    let settings = good("redis-cluster").settings;
    let nodes = vec![("a".into(), 7000), ("b".into(), 7000)];
    let own = redis(&settings);
    assert_eq!((&own.server, own.connections), (&RedisServer::Cluster { nodes }, 1));
}

#[test]
fn secrets_are_never_shown() {
    for name in ["redis", "redis-password-in-url"] {
        let shown = format!("{:?}", good(name));
        assert!(!shown.contains("hunter2") && !shown.contains("12345"), "{name}: {shown}");
    }
}
