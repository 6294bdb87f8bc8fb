//! The header fields of answers.

use serde_json::{Map, Value, json};
use tollgate_core::header::Profile;

/// Every field, by name, for `components`.
pub(super) fn components() -> Map<String, Value> {
    let own = ["Cache-Control", "Retry-After", "X-Tollgate-Source"];
    let profiles = Profile::ALL.iter().flat_map(|profile| profile.fields().iter().copied());
    own.into_iter().chain(profiles).map(|name| (name.to_owned(), component(name))).collect()
}

/// Those of an answer to a check, a peek or a reserve.
pub(super) fn of_verdict(refused: bool) -> Map<String, Value> {
    let mut names: Vec<&str> = vec!["Cache-Control", "X-Tollgate-Source"];
    if refused {
        names.push("Retry-After");
    }
    names.extend(Profile::ALL.iter().flat_map(|profile| profile.fields()));
    names.into_iter().map(reference).collect()
}

/// Those of any other answer.
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
        "Cache-Control" => (json!({"const": "no-store"}), "No answer holds for another request."),
        "Retry-After" => (
            json!({"type": "integer", "minimum": 1}),
            "Whole seconds until the same request would be admitted; absent when no wait can help.",
        ),
        "X-Tollgate-Source" => (
            text(),
            "Where the decision comes from, unless that is `store`, `memory`, `lease` or `none`.",
        ),
        "RateLimit" => (text(), "What is left of each limit, after draft -11 or -7."),
        "RateLimit-Policy" => (text(), "What each limit is, after draft -11, -7 or -6."),
        "RateLimit-Limit" | "X-RateLimit-Limit" => (whole(), "The tightest limit."),
        "RateLimit-Remaining" | "X-RateLimit-Remaining" => (whole(), "What is left of it."),
        "RateLimit-Reset" => (whole(), "Seconds until all of it is there again."),
        "X-RateLimit-Reset" => (
            json!({"type": "number", "minimum": 0}),
            "When all of it is there again: seconds since 1970, or from now, as the profile has it.",
        ),
        "X-RateLimit-Reset-After" => {
            (json!({"type": "number", "minimum": 0}), "Seconds until all of it is there again.")
        }
        "X-RateLimit-Used" => (whole(), "What is used of it."),
        "X-RateLimit-Policy" => (text(), "What the tightest limit is: how much, in which window."),
        "X-RateLimit-Resource" => (text(), "The name of the tightest limit."),
        "X-RateLimit-Bucket" => (text(), "The tightest limit and its key, hashed."),
        "X-RateLimit-Scope" => (text(), "Whether others share the limit that refused."),
        _ => (text(), "Sent where the file asks for it."),
    };
    json!({"description": what, "schema": schema, "required": name == "Cache-Control"})
}
