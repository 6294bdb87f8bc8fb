//! TG107: a key that a client makes up.
//!
//! One finding for each attribute, at its place in `identity`, else at the first key that uses it. Quiet when neither
//! the gateway nor forward-auth listens; for claims of a token; for limits that are off; and for a key such as
//! `[ip, header.x-device]` when another enforced limit that covers the same requests has a key of its other attributes,
//! here `[ip]`: whatever the client makes up stays within that one.

use super::chosen_from;
use crate::diagnostic::{Code, Position};
use crate::lint::Findings;
use crate::lint::view::{Item, View};
use crate::suggest::quoted;
use std::collections::HashSet;

pub(in crate::lint) const CODE: &Code = &Code::new(
    "TG107",
    "key that a client can choose",
    "Whoever changes the value with each request is never limited, and whoever sends someone else's spends their quota.",
);

pub(in crate::lint) fn check(view: &View<'_>, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for item in view.limits.iter().filter(|item| item.is_on()) {
        for (attribute, at) in item.key() {
            let Some(source) = chosen_from(view, attribute) else { continue };
            if seen.contains(attribute) || is_bounded(view, item) {
                continue;
            }
            seen.insert(attribute.to_owned());
            let name = quoted(&item.limit.name);
            let message = if source == attribute {
                format!("clients choose {}, the key of {name}, themselves", quoted(attribute))
            } else {
                format!(
                    "clients choose {} themselves: {} is the key of {name} and read from it as sent",
                    quoted(&source),
                    quoted(attribute)
                )
            };
            let help = "take it from a verified token (`jwt.sub`), or let a proxy set the field and remove what clients send";
            findings.warn(identity_at(view, attribute).unwrap_or(at), message, help);
        }
    }
}

/// Whether another limit holds all buckets that a client can make up for this one.
fn is_bounded(view: &View<'_>, item: &Item<'_>) -> bool {
    let given = |attribute: &str| chosen_from(view, attribute).is_none();
    view.covering(item).any(|other| {
        let key = &other.limit.key;
        !key.is_empty() && key.iter().all(|part| given(part) && item.limit.key.contains(part))
    })
}

fn identity_at(view: &View<'_>, attribute: &str) -> Option<Position> {
    let entries = &view.compiled.file.identity.as_ref()?.value.0;
    entries.iter().find(|(name, _)| name.value == attribute).map(|(_, from)| from.at)
}
