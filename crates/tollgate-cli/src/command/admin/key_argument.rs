//! Keys on the command line.

use serde_json::{Map, Value, json};
use tollgate_policy::hex::percent_encode;

/// The attributes of a key, and the limits that are meant.
#[derive(clap::Args)]
pub(crate) struct Key {
    /// The attributes of the key, such as user=42, or user=~HASH as `top` and `tail` show it
    #[arg(value_name = "NAME=VALUE", value_parser = attribute)]
    attributes: Vec<(String, String)>,

    /// Only this limit
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
}

impl Key {
    /// The key as JSON for the API.
    pub(super) fn body(&self) -> Value {
        let attributes: Map<String, Value> = self
            .attributes
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into()))
            .collect();
        let mut body = json!({"attributes": attributes});
        if let Some(limit) = &self.limit {
            body["limit"] = limit.as_str().into();
        }
        body
    }
}

pub(crate) fn attribute(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE, such as user=42".to_owned()),
    }
}

/// Percent-encodes a segment of a path.
pub(crate) fn percent_encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    percent_encode(text.as_bytes(), is_plain)
}
