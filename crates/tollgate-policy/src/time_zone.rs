//! Time zones by name, from the built-in database.

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use tollgate_core::{MAX_US, OffsetChange, Zone};

/// The IANA time zone database, as of the build.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
/// The zones in use, never freed. The database has a few hundred names, which bounds the memory.
static ZONES: Mutex<BTreeMap<&'static str, &'static Zone>> = Mutex::new(BTreeMap::new());

/// Returns the rules of a time zone such as `Europe/Berlin`, ignoring case; `None` for an unknown
/// name.
pub fn time_zone(name: &str) -> Option<&'static Zone> {
    let zone = DATABASE.get(name).ok().filter(|zone| !zone.is_unknown())?;
    let name = zone.iana_name().unwrap_or("UTC");
    if name == Zone::UTC.name() {
        return Some(Zone::UTC);
    }
    let mut zones = ZONES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = zones.get(name) {
        return Some(known);
    }
    let name: &'static str = String::leak(name.to_owned());
    let first_offset_s = zone.to_offset(Timestamp::UNIX_EPOCH).seconds();
    let last_s = i64::try_from(MAX_US / 1_000_000).unwrap_or(i64::MAX) + DAYS_AFTER_S;
    let mut shifts: Vec<OffsetChange> = Vec::new();
    for transition in zone.following(Timestamp::UNIX_EPOCH) {
        let shift = OffsetChange {
            from_s: transition.timestamp().as_second(),
            offset_s: transition.offset().seconds(),
        };
        if shift.from_s > last_s {
            break;
        }
        // Some transitions change only the abbreviation, not the offset.
        if shifts.last().map_or(first_offset_s, |last| last.offset_s) != shift.offset_s {
            shifts.push(shift);
        }
    }
    let zone: &'static Zone = Box::leak(Box::new(Zone::new(name, first_offset_s, shifts.leak())));
    zones.insert(name, zone);
    Some(zone)
}

/// The window of the last instant ends within this time, and so does the window after it.
const DAYS_AFTER_S: i64 = 70 * 86_400;

/// Returns the name that was probably meant.
pub(crate) fn nearest(name: &str) -> Option<String> {
    let names: Vec<String> = DATABASE.available().map(|name| name.as_str().to_owned()).collect();
    let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let near = crate::diagnostic::nearest(name, lower.iter().map(String::as_str))?;
    let place = lower.iter().position(|one| one == near)?;
    names.into_iter().nth(place)
}

#[cfg(test)]
mod tests;
