//! Everything that is neither a limit nor a store.

use super::gateway::{GatewayListen, GrpcListen, HttpListen};
use super::{
    At, DurationText, Entries, Field, MappedTier, OneAttribute, OneOrMany, Password, Text, either,
    raw, words,
};
use crate::diagnostic::Position;

raw! {
    /// The address of each front end; a front end without one is off. Port 0 picks a free port.
    Listen {
        /// Reverse proxy to `upstream`: an address, or a map with one.
        gateway: GatewayListen,
        /// Check API and forward-auth: an address, or a map with one.
        http: HttpListen,
        /// Envoy RLS v3 and gRPC health: an address, or a map with one.
        grpc: GrpcListen,
        /// CL.THROTTLE for any Redis client.
        resp: Text,
        /// Health, metrics, dashboard and admin API.
        admin: Text,
    }
}

impl Listen {
    /// The addresses by name, in the order of the file format.
    pub fn fields(&self) -> [(&'static str, Option<&At<Text>>); 5] {
        let gateway = match self.gateway.as_deref() {
            Some(GatewayListen::Address(address)) => Some(address),
            Some(GatewayListen::Form(form)) => form.address.as_ref(),
            None => None,
        };
        let grpc = match self.grpc.as_deref() {
            Some(GrpcListen::Address(address)) => Some(address),
            Some(GrpcListen::Form(form)) => form.address.as_ref(),
            None => None,
        };
        let http = match self.http.as_deref() {
            Some(HttpListen::Address(address)) => Some(address),
            Some(HttpListen::Form(form)) => form.address.as_ref(),
            None => None,
        };
        fn address(field: &Field<Text>) -> Option<&At<Text>> {
            field.as_ref()
        }
        [
            ("gateway", gateway),
            ("http", http),
            ("grpc", grpc),
            ("resp", address(&self.resp)),
            ("admin", address(&self.admin)),
        ]
    }
}

raw! {
    /// How the client's address is found behind trusted proxies: `header` or `hops`.
    ClientAddress {
        /// The header to read.
        header: Text,
        /// The position of the client's address in X-Forwarded-For, counted from the right.
        hops: u64,
        /// The prefix length of an IPv6 address that identifies one client.
        ipv6_prefix: u64,
    }
}

raw! {
    /// How tokens are verified.
    Jwt {
        /// A file with a JSON Web Key Set.
        #[cfg_attr(test, schemars(required))]
        keys: Text,
        /// The accepted algorithms: HS256, RS256, ES256, EdDSA.
        algorithms: OneOrMany<Text>,
        /// The `iss` that tokens must carry.
        issuer: Text,
        /// The `aud` that tokens must carry.
        audience: Text,
        /// The tolerated clock difference for `exp` and `nbf`: 0s to 10m; by default 5s.
        leeway: DurationText,
    }
}

raw! {
    /// How the tier of a request is found: at most one of `from`, `map`, `file` and `redis`.
    Tiers {
        /// The tier of requests without a tier, or with an unknown one.
        default: Text,
        /// The attribute that names the tier.
        from: OneAttribute,
        /// The attribute by which `map`, `file` or `redis` is looked up.
        by: OneAttribute,
        /// Tiers by value. A value is in clear, or hashed as `tollgate hash` prints it.
        map: Entries<MappedTier>,
        /// A watched file with tiers: its path, or {path: ...}.
        file: TiersFile,
        /// A Redis hash with tiers, cached: its name, or {hash: ..., by: ...}.
        redis: TiersRedis,
    }
}

either! {
    /// A file with a bare map of tiers, or {by: user, map: {"42": pro}}.
    TiersFile {
        /// The path.
        Path(Text),
        /// The path as a field.
        Form(TiersFileForm),
    }
}

raw! {
    /// The long form of `tiers.file`.
    TiersFileForm {
        /// The path.
        #[cfg_attr(test, schemars(required))]
        path: Text,
    }
}

raw! {
    /// A tier file of the form {by, map}.
    TierMapFile {
        /// The attribute by which tiers are looked up.
        by: OneAttribute,
        /// Tiers by value.
        map: Entries<MappedTier>,
    }
}

either! {
    /// Tiers in a Redis hash.
    TiersRedis {
        /// The name of the hash.
        Hash(Text),
        /// The hash with its own `by`.
        Form(TiersRedisForm),
    }
}

raw! {
    /// The long form of `tiers.redis`.
    TiersRedisForm {
        /// The name of the hash.
        #[cfg_attr(test, schemars(required))]
        hash: Text,
        /// The attribute by which the hash is looked up; by default `tiers.by`.
        by: OneAttribute,
    }
}

impl Tiers {
    /// The path of the tier file and its position, if there is one.
    pub fn file_path(&self) -> Option<(&str, Position)> {
        let file = self.file.as_ref()?;
        match &file.value {
            TiersFile::Path(path) => Some((path, file.at)),
            TiersFile::Form(form) => form.path.as_ref().map(|path| (&***path, path.at)),
        }
    }

    /// The attributes that decide the tier, as written.
    pub fn attributes(&self) -> impl Iterator<Item = &At<OneAttribute>> {
        let of_redis = match self.redis.as_deref() {
            Some(TiersRedis::Form(form)) => form.by.as_ref(),
            _ => None,
        };
        self.from.iter().chain(&self.by).chain(of_redis)
    }
}

raw! {
    /// The body of a refusal by the gateway or a tower layer, in place of problem+json.
    Refusal {
        /// The text, in which {status}, {retry_after} and {limits} are replaced.
        #[cfg_attr(test, schemars(required))]
        body: Text,
        /// The media type; by default text/plain.
        content_type: Text,
    }
}

raw! {
    /// The admin API.
    Admin {
        /// The token that gives access to the admin API.
        token: Password,
        /// The audit log of changes; by default, changes go to the log.
        audit: Audit,
        /// Further host names of the admin listener: `name`, `*.example.com` for all names below
        /// it, `*` for any name.
        hosts: OneOrMany<Text>,
    }
}

raw! {
    /// The audit log of changes through the admin API.
    Audit {
        /// The file; each change appends one line of JSON.
        #[cfg_attr(test, schemars(required))]
        file: Text,
    }
}

raw! {
    /// The front end for Redis clients.
    Resp {
        /// The password that clients send in AUTH or HELLO.
        password: Password,
    }
}

raw! {
    /// Accepted lints.
    Lint {
        /// Codes, such as TG101.
        allow: OneOrMany<Text>,
    }
}

raw! {
    /// Files of envoyproxy/ratelimit, and settings of responses to Envoy.
    Envoy {
        /// The paths of the files; may contain `*`.
        configs: OneOrMany<Text>,
        /// How closely the limits follow envoyproxy/ratelimit.
        compat: EnvoyCompat,
        /// The status of refusals in Envoy's filter, which problem bodies repeat.
        rate_limited_status: u64,
        /// Whether responses have `dynamic_metadata`.
        dynamic_metadata: bool,
    }
}

words! {
    /// `envoy.compat`.
    EnvoyCompat {
        /// Like envoyproxy/ratelimit; the default.
        Envoy = "envoy",
        /// All-or-nothing, like the other front ends.
        Strict = "strict",
    }
}
