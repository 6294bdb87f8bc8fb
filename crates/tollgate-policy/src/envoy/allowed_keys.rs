//! The keys that a ratelimit file may have. As in envoyproxy/ratelimit, one list holds for all
//! levels.

use crate::diagnostic::{Report, codes};
use crate::yaml::{Node, ScalarKind, Value, YamlKey};

const KEYS: [&str; 16] = [
    "domain",
    "key",
    "value",
    "descriptors",
    "rate_limit",
    "unit",
    "requests_per_unit",
    "unlimited",
    "shadow_mode",
    "name",
    "replaces",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "quota_mode",
    "metadata",
];

/// A key that envoyproxy/ratelimit does not have: `debt` beside `unit`.
const OURS: &str = "debt";

/// Reports keys that envoyproxy/ratelimit does not know.
pub(super) fn check(node: &Node, report: &mut Report) {
    let Value::Map(entries) = &node.value else { return };
    for (key, value) in entries {
        if !check_key(key, report) || key.text == "metadata" {
            continue;
        }
        match &value.value {
            Value::Map(_) => check(value, report),
            Value::List(items) => items.iter().for_each(|item| match item.value {
                Value::Map(_) => check(item, report),
                _ => {
                    let message = "config error, yaml file contains list of type other than map";
                    let message = format!("{message}: {}", shown(&item.value));
                    let help = "write each item as `- key: value`";
                    report.error(codes::RATELIMIT_FILE, item.at, message, help);
                }
            }),
            Value::Scalar { kind: ScalarKind::Number, text } => {
                let message = format!(
                    "error checking config: `{text}` is not a text, a whole number or a flag"
                );
                let help = "write a text, a whole number, or true or false";
                report.error(codes::RATELIMIT_FILE, value.at, message, help);
            }
            Value::Scalar { .. } | Value::Null => {}
        }
    }
}

fn shown(value: &Value) -> &str {
    match value {
        Value::Scalar { text, .. } => text,
        Value::Null => "<nil>",
        Value::List(_) => "[...]",
        Value::Map(_) => "map[...]",
    }
}

fn check_key(key: &YamlKey, report: &mut Report) -> bool {
    let text = key.text.as_str();
    if KEYS.contains(&text) || text == OURS {
        return true;
    }
    let is_text =
        text.parse::<f64>().is_err() && !matches!(text, "true" | "false" | "null" | "~" | "");
    let (message, help) = if is_text {
        let help = format!("the keys are {}", KEYS.join(", "));
        (format!("config error, unknown key '{text}'"), help)
    } else {
        let message = format!("config error, key is not of type string: {text}");
        (message, "keys are names, such as `key` or `rate_limit`".to_owned())
    };
    report.error(codes::RATELIMIT_FILE, key.at, message, help);
    false
}
