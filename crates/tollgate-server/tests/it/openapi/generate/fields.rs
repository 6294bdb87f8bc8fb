//! The headers of answers.

use serde_json::{Map, Value, json};
use tollgate_core::header::Profile;

/// All headers by name, for `components`.
pub(super) fn components() -> Map<String, Value> {
    let own = ["Cache-Control", "Retry-After", "X-Tollgate-Source"];
    let profiles = Profile::ALL.iter().flat_map(|profile| profile.fields().iter().copied());
    own.into_iter().chain(profiles).map(|name| (name.to_owned(), component(name))).collect()
}

/// The headers of an answer to a check, a peek or a reserve.
pub(super) fn of_verdict(refused: bool) -> Map<String, Value> {
    let mut names: Vec<&str> = vec!["Cache-Control", "X-Tollgate-Source"];
    if refused {
        names.push("Retry-After");
    }
    names.extend(Profile::ALL.iter().flat_map(|profile| profile.fields()));
    names.into_iter().map(reference).collect()
}

/// The headers of any other answer.
pub(super) fn of_other(status: u16) -> Map<String, Value> {
    let mut fields: Map<String, Value> = [reference("Cache-Control")].into_iter().collect();
    if status == 503 {
        fields.extend([reference("Retry-After")]);
    }
    fields
}

fn reference(name: &str) -> (String, Value) {
    (name.to_owned(), json!({"$ref": format!("#/components/headers/{name}")}))
}

fn component(name: &str) -> Value {
    let whole = || json!({"type": "integer", "minimum": 0});
    let text = || json!({"type": "string", "minLength": 1});
    let (schema, what) = match name {
        "Cache-Control" => (json!({"const": "no-store"}), "Answers must not be cached."),
        "Retry-After" => (
            json!({"type": "integer", "minimum": 1}),
            "Whole seconds until the same request would be admitted; absent if no wait helps.",
        ),
        "X-Tollgate-Source" => (
            text(),
            "The source of the decision, unless it is `store`, `memory`, `lease` or `none`.",
        ),
        "RateLimit" => (text(), "The remaining units of each limit, as in draft -11 or -7."),
        "RateLimit-Policy" => (text(), "The policy of each limit, as in draft -11, -7 or -6."),
        "RateLimit-Limit" | "X-RateLimit-Limit" => (whole(), "The tightest limit."),
        "RateLimit-Remaining" | "X-RateLimit-Remaining" => {
            (whole(), "The remaining units of the tightest limit.")
        }
        "RateLimit-Reset" => {
            (whole(), "Seconds until the full capacity of the tightest limit is back.")
        }
        "X-RateLimit-Reset" => (
            json!({"type": "number", "minimum": 0}),
            "When the full capacity is back: seconds since 1970 or from now, by profile.",
        ),
        "X-RateLimit-Reset-After" => (
            json!({"type": "number", "minimum": 0}),
            "Seconds until the full capacity of the tightest limit is back.",
        ),
        "X-RateLimit-Used" => (whole(), "The used units of the tightest limit."),
        "X-RateLimit-Policy" => {
            (text(), "The policy of the tightest limit: its capacity and window.")
        }
        "X-RateLimit-Resource" => (text(), "The name of the tightest limit."),
        "X-RateLimit-Bucket" => (text(), "The tightest limit and its key, hashed."),
        "X-RateLimit-Scope" => (text(), "Whether clients share the limit that refused."),
        _ => (text(), "Sent if the policy asks for it."),
    };
    json!({"description": what, "schema": schema, "required": name == "Cache-Control"})
}
