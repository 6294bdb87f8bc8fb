//! TG122: a key of `first_of` that no request uses.
//!
//! Reported: a key that contains all attributes of an earlier key. If the gateway listens, also a
//! key after one that every request has (`ip`, `method`, `path`). Not reported: limits that
//! are off.

use super::Findings;
use super::analysis::view::LintView;
use crate::diagnostic::{Code, quoted};
use crate::settings::Front;

pub(super) const CODE: &Code = &Code::new(
    "TG122",
    "key that no request uses",
    "A request uses the first key whose attributes it has, so a key behind one that is always complete is never used.",
);

const ALWAYS: [&str; 3] = ["ip", "method", "path"];

pub(super) fn check(view: &LintView<'_>, findings: &mut Findings<'_>) {
    let is_gateway = view.listens(Front::Gateway);
    for item in view.limits.iter().filter(|item| item.is_on()) {
        let keys: Vec<&[Box<str>]> = item.limit.keys().collect();
        for (place, written) in item.keys().enumerate().skip(1) {
            let comes_first = |earlier: &&&[Box<str>]| {
                let is_there = |part: &str| {
                    keys[place].iter().any(|own| **own == *part)
                        || (is_gateway && ALWAYS.contains(&part))
                };
                earlier.iter().all(|part| is_there(part))
            };
            let Some(earlier) = keys[..place].iter().find(comes_first) else { continue };
            let (name, key) = (quoted(&item.limit.name), quoted(&keys[place].join("+")));
            let earlier = quoted(&earlier.join("+"));
            let message = format!(
                "no request uses the key {key} of {name}: each request that has it also has {earlier}, which comes first"
            );
            let at = written.map(|(_, at)| at).next().unwrap_or(item.at());
            findings.warn(
                at,
                message,
                format!("put {key} before {earlier}, or remove one of the two"),
            );
        }
    }
}
