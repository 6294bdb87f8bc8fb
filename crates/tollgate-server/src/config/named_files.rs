//! Files that a policy names: finds their problems, and the positions of their names in the policy.

use super::load::{KeyFile, TierFile, read_regular};
use super::{Config, ConfigError, ConfigErrorKind};
use crate::front::gateway;
use crate::tls::{self, TlsError, TlsProblem};
use std::path::{Path, PathBuf};
use tollgate::store::ProcessClock;
use tollgate_policy::diagnostic::{Position, Severity, codes};
use tollgate_policy::raw::{
    At, Field, File, GatewayListen, GrpcListen, ServerTls, Text, Upstreams,
};
use tollgate_policy::settings::{Front, Settings, TierSource};
use tollgate_policy::{Compiled, Diagnostic, TierRules};

const UNREADABLE_HELP: &str =
    "`serve` needs it beside the policy: check the name, and who may read it";

/// Problems of the files that the policy at `path` names, by file: token keys, tiers and
/// certificates. An unreadable file is a warning here, but an error for [`serve`](crate::serve): a
/// policy is often checked on a machine without its secrets.
pub fn check_named_files(path: &Path, compiled: &Compiled) -> Vec<(PathBuf, Diagnostic)> {
    let config = Config::file(path);
    let (folder, settings) = (config.folder(), &compiled.settings);
    let mut errors = Vec::new();
    if let Some(jwt) = &settings.jwt {
        let file = folder.join(&*jwt.keys);
        let keys = read_regular(&file).and_then(|bytes| KeyFile::new(&file, jwt, bytes));
        errors.extend(keys.err());
    }
    if let Some(TierSource::File { path, .. }) = &settings.tiers.source {
        let (file, rules) = (folder.join(&**path), TierRules::of(compiled));
        let tiers = read_regular(&file).and_then(|bytes| TierFile::new(&file, bytes, &rules));
        errors.extend(tiers.err());
    }
    let mut found = Vec::new();
    for trouble in tls_problems(settings, folder) {
        match trouble {
            TlsProblem::Unusable(error) => {
                errors.push(ConfigErrorKind::Tls(error).of(config.name()));
            }
            TlsProblem::OutOfDate(file, message) => {
                let at = file_position(folder, &compiled.file, &file);
                let help = "renew it; a running node reloads it by itself";
                let warning =
                    Diagnostic::new(codes::OUT_OF_DATE, Severity::Warning, at, message, help);
                found.push((config.name(), warning));
            }
        }
    }
    for error in errors {
        let is_absent = is_unreadable(&error);
        let error = with_policy_position(&config, compiled, error);
        match error.kind {
            ConfigErrorKind::NamedFile(policy, mut diagnostic) => {
                if is_absent {
                    diagnostic.severity = Severity::Warning;
                }
                found.push((policy, *diagnostic));
            }
            ConfigErrorKind::Invalid(diagnostics) => {
                found.extend(diagnostics.into_iter().map(|one| (error.file.clone(), one)));
            }
            _ => {}
        }
    }
    found.sort_by_key(|(_, diagnostic)| diagnostic.position());
    found
}

/// Problems of the certificates of all listeners.
fn tls_problems(settings: &Settings, folder: &Path) -> Vec<TlsProblem> {
    let now_us = ProcessClock.now_us();
    let listens = |front| settings.listeners.iter().any(|listener| listener.front == front);
    let mut found =
        if listens(Front::Gateway) { gateway::check(settings, folder, now_us) } else { Vec::new() };
    if let Some(files) = settings.grpc_tls.as_ref().filter(|_| listens(Front::Grpc)) {
        found.extend(tls::check(files, folder, now_us));
    }
    found
}

fn is_unreadable(error: &ConfigError) -> bool {
    use ConfigErrorKind::{Tls, Unreadable};
    matches!(error.kind, Unreadable(_) | Tls(TlsError::Unreadable(..)))
}

/// Adds to the error the position at which the policy names its file.
pub(crate) fn with_policy_position(
    config: &Config,
    compiled: &Compiled,
    error: ConfigError,
) -> ConfigError {
    let named = error.file.display();
    let (file, message, help) = match &error.kind {
        ConfigErrorKind::Unreadable(why) => {
            (&*error.file, format!("cannot read {named}: {why}"), UNREADABLE_HELP)
        }
        ConfigErrorKind::Keys(why) => {
            let help = "write a JSON Web Key Set, a public key in PEM, or a secret of 32 bytes or more for HS256";
            (&*error.file, format!("{named}: {why}"), help)
        }
        ConfigErrorKind::Tls(why) => {
            (why.file().unwrap_or(Path::new("")), why.to_string(), tls_help(why))
        }
        _ => return error,
    };
    let at = match &error.kind {
        ConfigErrorKind::Tls(TlsError::ClientName(name)) => {
            client_name_position(&compiled.file, name)
        }
        _ => file_position(config.folder(), &compiled.file, file),
    };
    let diagnostic = Diagnostic::new(codes::NAMED_FILE, Severity::Error, at, message, help);
    ConfigErrorKind::NamedFile(config.name(), Box::new(diagnostic)).of(file)
}

fn tls_help(error: &TlsError) -> &'static str {
    match error {
        TlsError::Unreadable(..) => UNREADABLE_HELP,
        TlsError::NotPem(..) => {
            "certificates begin with -----BEGIN CERTIFICATE-----, keys are in PKCS #8, PKCS #1 or SEC 1 and not encrypted"
        }
        TlsError::Unusable(..) => {
            "write the certificate first, then its issuers; the key must belong to the certificate"
        }
        TlsError::Name(..) => "name the upstream as its certificate does",
        TlsError::ClientName(..) => {
            "write a DNS name or an address, as client certificates have it"
        }
    }
}

/// The certificates of listeners.
fn listener_tls(file: &File) -> impl Iterator<Item = &ServerTls> {
    let listen = file.listen.as_ref();
    let gateway = match listen.and_then(|listen| listen.gateway.as_deref()) {
        Some(GatewayListen::Form(form)) => form.tls.as_deref(),
        _ => None,
    };
    let grpc = match listen.and_then(|listen| listen.grpc.as_deref()) {
        Some(GrpcListen::Form(form)) => form.tls.as_deref(),
        _ => None,
    };
    gateway.into_iter().chain(grpc)
}

/// The position of this entry of `client_names`.
fn client_name_position(file: &File, wanted: &str) -> Position {
    let lists = listener_tls(file).filter_map(|tls| tls.client_names.as_ref());
    let mut names = lists.flat_map(|list| list.value.0.iter());
    names.find(|name| name.value.0 == wanted).map_or(Position::START, |name| name.at)
}

/// The position at which the policy names the file; without a file, the position of the upstreams.
fn file_position(folder: &Path, file: &File, wanted: &Path) -> Position {
    let mut names: Vec<&Field<Text>> = Vec::new();
    names.extend(file.jwt.as_ref().map(|jwt| &jwt.keys));
    let tiers = file.tiers.as_ref().and_then(|tiers| tiers.file_path());
    for tls in listener_tls(file) {
        names.extend([&tls.cert, &tls.key, &tls.client_ca]);
    }
    if let Some(At { value: Upstreams::Form(form), .. }) = &file.upstream
        && let Some(tls) = &form.tls
    {
        names.extend([&tls.ca, &tls.cert, &tls.key]);
    }
    let names = names.into_iter().flatten().map(|name| (&*name.value.0, name.at));
    let configs = file.envoy.as_ref().and_then(|envoy| envoy.configs.as_ref());
    let configs = configs.into_iter().flat_map(|configs| &configs.value.0);
    let configs = configs.map(|name| (&*name.value.0, name.at));
    let named =
        tiers.into_iter().chain(names).chain(configs).find(|(name, _)| folder.join(name) == wanted);
    let servers = file.upstream.as_ref().map(|upstream| upstream.at);
    named.map(|(_, at)| at).or(servers).unwrap_or(Position::START)
}
