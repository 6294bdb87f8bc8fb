//! Reads ratelimit files into the tree, with the error messages of envoyproxy/ratelimit.

use super::tree::{Descriptor, DescriptorLevel, ValuePattern};
use super::yaml_values::{UNMARSHAL, boolean, count, describe, mismatch, report_error, text};
use super::{ConfigOptions, Configs, DescriptorRule, InvalidConfig, Metadata, Unit, allowed_keys};
use crate::diagnostic::Report;
use crate::limit::{Counting, Limit, Mode, Selector};
use crate::matcher::glob::Glob;
use crate::yaml::{self, Node, Value};
use std::collections::HashSet;
use std::panic::resume_unwind;
use std::thread;
use tollgate_core::{LimitParams, Rate, algorithm::FixedWindow};

/// The deepest file: a list and a map for each of the 64 entries that a request may have, and the
/// levels of a limit.
const DEPTH_MAX: usize = 2 * 64 + 32;
/// Several times the stack that `DEPTH_MAX` levels need in a debug build.
const STACK_BYTES: usize = 16 << 20;

/// Reads on a separate thread, since the caller's stack may be too small for deep files.
pub(super) fn read(
    files: &[(&str, &[u8])],
    options: ConfigOptions,
) -> Result<Configs, Vec<InvalidConfig>> {
    thread::scope(|scope| {
        let deep = || read_here(files, options, DEPTH_MAX);
        let builder = thread::Builder::new().name("ratelimit-files".into());
        match builder.stack_size(STACK_BYTES).spawn_scoped(scope, deep) {
            Ok(reading) => reading.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // If no thread can start, files may only be as deep as policies.
            Err(_) => read_here(files, options, yaml::DEPTH_MAX),
        }
    })
}

fn read_here(
    files: &[(&str, &[u8])],
    options: ConfigOptions,
    depth_max: usize,
) -> Result<Configs, Vec<InvalidConfig>> {
    let mut reader = ConfigReader { configs: Configs::default(), options, names: HashSet::new() };
    let mut all = Vec::new();
    for (file, (_, bytes)) in files.iter().enumerate() {
        let mut report = Report::default();
        match yaml::parse_deep(bytes, depth_max) {
            Err(mut error) => {
                error.message = format!("error loading config file: yaml: {}", error.message);
                report.push(error);
            }
            Ok(node) => {
                allowed_keys::check(&node, &mut report);
                if report.is_empty() {
                    reader.file(&node, &mut report);
                }
            }
        }
        if !report.is_empty() {
            all.push(InvalidConfig { file, diagnostics: report.finish() });
        }
    }
    if all.is_empty() { Ok(reader.configs) } else { Err(all) }
}

struct ConfigReader {
    configs: Configs,
    options: ConfigOptions,
    /// The names of the limits so far.
    names: HashSet<Box<str>>,
}

/// The path to a descriptor.
#[derive(Clone)]
struct DescriptorPath {
    /// The path in the notation of envoyproxy/ratelimit.
    shown: String,
    /// The keys and values, separately.
    parts: Vec<Box<str>>,
}

impl ConfigReader {
    fn file(&mut self, node: &Node, report: &mut Report) {
        if !matches!(node.value, Value::Map(_) | Value::Null) {
            let into = "map[interface {}]interface {}";
            let message = format!("{UNMARSHAL} cannot unmarshal {} into {into}", describe(node));
            return report_error(report, node.at, message, "begin the file with `domain: NAME`");
        }
        let domain = node.field("domain");
        let name = text(node, "domain", report);
        let at = domain.map_or(node.at, |domain| domain.at);
        if name.is_empty() {
            let help = "add `domain: NAME`, as the filter in Envoy names it";
            return report_error(report, at, "config file cannot have empty domain", help);
        }
        if self.configs.has_domain(&name) {
            let message = format!("duplicate domain '{name}' in config file");
            let help = "put the descriptors of a domain into one file";
            return report_error(report, at, message, help);
        }
        let path = DescriptorPath { shown: format!("{name}."), parts: vec![name.as_str().into()] };
        let level = self.level(node, &path, report);
        self.configs.domains.insert(name.into(), level);
    }

    /// Reads one level. The parser's depth limit bounds the recursion.
    fn level(
        &mut self,
        node: &Node,
        path: &DescriptorPath,
        report: &mut Report,
    ) -> DescriptorLevel {
        let mut level = DescriptorLevel::default();
        let mut seen = HashSet::new();
        let list = match node.field("descriptors").map(|list| (&list.value, list.at)) {
            None | Some((Value::Null, _)) => return level,
            Some((Value::List(list), _)) => list,
            Some((_, at)) => {
                let message = mismatch(node, "descriptors", "[]config.YamlDescriptor");
                report_error(report, at, message, "write each as `- key: NAME`");
                return level;
            }
        };
        for item in list {
            let key = text(item, "key", report);
            let value = text(item, "value", report);
            if key.is_empty() {
                report_error(report, item.at, "descriptor has empty key", "add `key: NAME`");
                continue;
            }
            let mut path = path.clone();
            path.shown += &key;
            if !value.is_empty() {
                path.shown += "_";
                path.shown += &value;
            }
            if !seen.insert((key.clone(), value.clone())) {
                let message = format!("duplicate descriptor composite key '{}'", path.shown);
                report_error(report, item.at, message, "remove one of the two, or join them");
                continue;
            }
            path.parts.extend([key.as_str().into(), value.as_str().into()]);
            let Some(place) = value_pattern(&value, item, report) else { continue };
            let descriptor = self.descriptor(item, &value, path, report);
            level.insert(&key, place, descriptor);
        }
        level
    }

    fn descriptor(
        &mut self,
        node: &Node,
        value: &str,
        mut path: DescriptorPath,
        report: &mut Report,
    ) -> Descriptor {
        let is_shared = boolean(node, "share_threshold", report);
        if is_shared && !value.contains('*') {
            let at = node.field("share_threshold").map_or(node.at, |field| field.at);
            let found = path.parts.iter().rev().take(2).rev().filter(|part| !part.is_empty());
            let found = found.map(|part| &**part).collect::<Vec<_>>().join("_");
            let message = format!(
                "share_threshold can only be used with wildcard values (containing '*'), but found key '{found}'"
            );
            report_error(report, at, message, "give `value` a `*`, or remove `share_threshold`");
        }
        let limit = node.field("rate_limit").filter(|field| !matches!(field.value, Value::Null));
        let is_map = |limit: &Node| matches!(limit.value, Value::Map(_));
        if let Some(limit) = limit.filter(|limit| !is_map(limit)) {
            let message = mismatch(node, "rate_limit", "config.YamlRateLimit");
            let help = "write `unit` and `requests_per_unit` below it";
            report_error(report, limit.at, message, help);
        }
        let limit = limit.filter(|limit| is_map(limit));
        let rule = limit.and_then(|limit| self.rule(node, limit, &path, report));
        let rule = rule.map(|rule| {
            self.configs.rules.push(rule);
            self.configs.rules.len() - 1
        });
        path.shown += ".";
        let below = self.level(node, &path, report);
        Descriptor { rule, below, shared: is_shared.then(|| value.into()) }
    }

    fn rule(
        &mut self,
        descriptor: &Node,
        node: &Node,
        path: &DescriptorPath,
        report: &mut Report,
    ) -> Option<DescriptorRule> {
        let unlimited = boolean(node, "unlimited", report);
        let written = text(node, "unit", report);
        let at = node.field("unit").map_or(node.at, |unit| unit.at);
        let unit = Unit::parse(&written);
        match (unlimited, unit) {
            (true, Some(_)) => {
                let message = "should not specify rate limit unit when unlimited";
                report_error(report, at, message, "remove `unit`, or `unlimited`");
            }
            (false, None) => {
                let message = format!("invalid rate limit unit '{written}'");
                let help = "write second, minute, hour, day, week, month or year";
                report_error(report, at, message, help);
            }
            _ => {}
        }
        let requests_per_unit = count(node, "requests_per_unit", report);
        let name = Some(text(node, "name", report)).filter(|name| !name.is_empty());
        let replaces = replaces(node, name.as_deref(), report);
        let limit = unit.filter(|_| !unlimited).and_then(|unit| {
            let rate = Rate::try_new(requests_per_unit.into(), unit.period_us()).ok()?;
            self.limit(descriptor, node, path, rate, report)
        });
        let metadata = descriptor.field("metadata").map(Metadata::of);
        Some(DescriptorRule {
            limit,
            name: name.map(Into::into),
            replaces,
            quota: boolean(descriptor, "quota_mode", report),
            unit: unit.filter(|_| !unlimited),
            requests_per_unit,
            metadata: metadata.filter(|metadata| *metadata != Metadata::Null),
        })
    }

    /// Creates the limit, with the counter name that envoyproxy/ratelimit would use.
    fn limit(
        &mut self,
        descriptor: &Node,
        node: &Node,
        path: &DescriptorPath,
        rate: Rate,
        report: &mut Report,
    ) -> Option<Limit> {
        // In envoyproxy/ratelimit these fields name metrics. They are only checked here: no metric
        // label comes from a request.
        boolean(descriptor, "value_to_metric", report);
        boolean(descriptor, "detailed_metric", report);
        let visible = |c: char| if matches!(c, ' '..='~') { c } else { '?' };
        let plain: String = path.shown.chars().map(visible).collect();
        let numbered = |n: usize| if n == 1 { plain.clone() } else { format!("{plain}#{n}") };
        let name = (1..).map(numbered).find(|name| !self.names.contains(name.as_str()))?;
        self.names.insert(name.as_str().into());
        let key: Vec<&str> = path.parts.iter().map(|part| &**part).collect();
        let mut limit =
            Limit::new(&name, &key, Some(LimitParams::FixedWindow(FixedWindow::new(rate))));
        limit.selector = Selector::Descriptor;
        limit.on_store_failure = self.options.on_store_failure;
        if boolean(descriptor, "shadow_mode", report) {
            limit.mode = Mode::Shadow;
        }
        limit.counting = match (boolean(node, "debt", report), self.options.strict) {
            (_, false) => Counting::Requested,
            (true, true) => Counting::Debt,
            (false, true) => Counting::Admitted,
        };
        Some(limit)
    }
}

fn value_pattern(value: &str, node: &Node, report: &mut Report) -> Option<ValuePattern> {
    if value.is_empty() {
        return Some(ValuePattern::Any);
    }
    if !value.contains('*') {
        return Some(ValuePattern::Exact(value.into()));
    }
    let glob = Glob::text(value).ok();
    if glob.is_none() {
        report_error(report, node.at, "the wildcard value is too long", "shorten `value`");
    }
    glob.map(ValuePattern::Wild)
}

fn replaces(node: &Node, own: Option<&str>, report: &mut Report) -> Box<[Box<str>]> {
    let Some(field) = node.field("replaces") else { return Box::default() };
    let Value::List(items) = &field.value else {
        if !matches!(field.value, Value::Null) {
            let message = mismatch(node, "replaces", "[]config.yamlReplaces");
            report_error(report, field.at, message, "write each as `- name: NAME`");
        }
        return Box::default();
    };
    let mut names = Vec::new();
    for item in items {
        let name = text(item, "name", report);
        if name.is_empty() {
            let help = "name the limit that is replaced: `- name: NAME`";
            report_error(report, item.at, "should not have an empty replaces entry", help);
        } else if own == Some(name.as_str()) {
            let message = "replaces should not contain name of same descriptor";
            let help = "a limit cannot replace itself; remove this entry";
            report_error(report, item.at, message, help);
        } else {
            names.push(name.into());
        }
    }
    names.into()
}
