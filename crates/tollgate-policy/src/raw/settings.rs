//! Everything that is neither a limit nor a store.

use super::gateway::{GatewayListen, GrpcListen, HttpListen};
use super::{
    At, DurationText, Entries, Field, MappedTier, OneAttribute, OneOrMany, Password, Text, either,
    raw, words,
};
use crate::diagnostic::Position;

raw! {
    /// Where each front end listens; one that is not named is off. Port 0 picks a free one.
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
    /// The addresses by name, in file-format order.
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
        /// Take the n-th address from the right of X-Forwarded-For.
        hops: u64,
        /// How many bits of an IPv6 address make one client.
        ipv6_prefix: u64,
    }
}

raw! {
    /// How tokens are verified.
    Jwt {
        /// A file with a JSON Web Key Set.
        #[schemars(required)]
        keys: Text,
        /// HS256, RS256, ES256, EdDSA.
        algorithms: OneOrMany<Text>,
        /// The `iss` that tokens must carry.
        issuer: Text,
        /// The `aud` that tokens must carry.
        audience: Text,
        /// How far clocks may differ for `exp` and `nbf`: 0s to 10m, 5s without it.
        leeway: DurationText,
    }
}

raw! {
    /// Which tier a request belongs to: at most one of `from`, `map`, `file` and `redis`.
    Tiers {
        /// The tier of requests without one, or with an unknown one.
        default: Text,
        /// The attribute that names the tier.
        from: OneAttribute,
        /// The attribute by whose value `map`, `file` or `redis` finds the tier.
        by: OneAttribute,
        /// Tiers by value. A value is in clear, or hashed as `tollgate hash` prints it.
        map: Entries<MappedTier>,
        /// Looked up in a watched file: its path, or {path: ...}.
        file: TiersFile,
        /// Looked up in a Redis hash, cached: its name, or {hash: ..., by: ...}.
        redis: TiersRedis,
    }
}

either! {
    /// Tiers in a file that holds the map alone, or {by: user, map: {"42": pro}}.
    TiersFile {
        /// Its path.
        Path(Text),
        /// With a name for the path.
        Form(TiersFileForm),
    }
}

raw! {
    /// The longer form of `tiers.file`.
    TiersFileForm {
        /// Its path.
        #[schemars(required)]
        path: Text,
    }
}

raw! {
    /// The file that `tiers.file` names, when it says by which attribute.
    TierMapFile {
        /// The attribute by whose value tiers are looked up.
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
        /// With its own `by`.
        Form(TiersRedisForm),
    }
}

raw! {
    /// The longer form of `tiers.redis`.
    TiersRedisForm {
        /// The name of the hash.
        #[schemars(required)]
        hash: Text,
        /// The attribute whose value is the field; else `tiers.by`.
        by: OneAttribute,
    }
}

impl Tiers {
    /// The path of the file, where one is named, and its place.
    pub fn file_path(&self) -> Option<(&str, Position)> {
        let file = self.file.as_ref()?;
        match &file.value {
            TiersFile::Path(path) => Some((path, file.at)),
            TiersFile::Form(form) => form.path.as_ref().map(|path| (&***path, path.at)),
        }
    }

    /// Every attribute that decides the tier, as written.
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
        #[schemars(required)]
        body: Text,
        /// Its media type; text/plain without it.
        content_type: Text,
    }
}

raw! {
    /// The admin API.
    Admin {
        /// Who knows it may use the admin API.
        token: Password,
        /// Where changes are recorded; without it, in the log.
        audit: Audit,
        /// More host names of the admin listener: `name`, `*.example.com` for all below one, `*`
        /// for any.
        hosts: OneOrMany<Text>,
    }
}

raw! {
    /// Where changes through the admin API are recorded.
    Audit {
        /// A file that one line of JSON is appended to for each change.
        #[schemars(required)]
        file: Text,
    }
}

raw! {
    /// The front end for Redis clients.
    Resp {
        /// What a client has to say in AUTH or HELLO before anything else.
        password: Password,
    }
}

raw! {
    /// Which lints are accepted.
    Lint {
        /// Codes, such as TG101.
        allow: OneOrMany<Text>,
    }
}

raw! {
    /// Files of envoyproxy/ratelimit, and what Envoy is told.
    Envoy {
        /// Paths, with `*`.
        configs: OneOrMany<Text>,
        /// How closely to follow envoyproxy/ratelimit.
        compat: EnvoyCompat,
        /// The status that Envoy's filter refuses with, which problem bodies repeat.
        rate_limited_status: u64,
        /// Whether answers have `dynamic_metadata`.
        dynamic_metadata: bool,
    }
}

words! {
    /// `envoy.compat`.
    EnvoyCompat {
        /// As envoyproxy/ratelimit does; the default.
        Envoy = "envoy",
        /// All-or-nothing, as everywhere else here.
        Strict = "strict",
    }
}
