//! The contents of the screen, and the key presses that change them. Independent of the terminal.

use super::figures::{COLUMNS, Figures, Rates};
use super::{Measure, Window};
use crate::command::table::plain;
use crate::command::tail::key_text;
use serde_json::Value;

/// The operator's choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) by: Measure,
    pub(super) window: Window,
    /// Whether to show the top keys of all nodes.
    pub(super) is_fleet: bool,
    pub(super) sort: SortBy,
    pub(super) filter: String,
    /// Whether key presses go to the filter.
    pub(super) is_typing: bool,
}

/// The order of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortBy {
    Admitted,
    Refused,
    Shadow,
    Failure,
    Name,
}

/// The effect of a key press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    Nothing,
    /// The top keys must be read again.
    OtherKeys,
    Quit,
}

/// The data of one screen.
pub(super) struct Screen<'a> {
    pub(super) authority: &'a str,
    pub(super) view: &'a View,
    pub(super) figures: &'a Figures,
    pub(super) rates: &'a Rates,
    pub(super) top: &'a Value,
}

const ESCAPE: char = '\u{1b}';
const END_OF_TEXT: char = '\u{3}';

impl View {
    /// Handles a key press. The end of input quits.
    pub(super) fn press(&mut self, key: Option<char>) -> Pressed {
        let Some(key) = key.filter(|key| *key != END_OF_TEXT) else { return Pressed::Quit };
        if self.is_typing {
            match key {
                ESCAPE => {
                    self.filter.clear();
                    self.is_typing = false;
                }
                '\r' | '\n' => self.is_typing = false,
                '\u{8}' | '\u{7f}' => drop(self.filter.pop()),
                key if !key.is_control() && self.filter.len() < 64 => self.filter.push(key),
                _ => {}
            }
            return Pressed::Nothing;
        }
        match key {
            'q' => return Pressed::Quit,
            'a' => self.sort = SortBy::Admitted,
            'r' => self.sort = SortBy::Refused,
            's' => self.sort = SortBy::Shadow,
            'f' => self.sort = SortBy::Failure,
            'n' => self.sort = SortBy::Name,
            '/' => self.is_typing = true,
            ESCAPE => self.filter.clear(),
            'k' => {
                self.by = self.by.next();
                return Pressed::OtherKeys;
            }
            'w' => {
                self.window = self.window.other();
                return Pressed::OtherKeys;
            }
            _ => {}
        }
        Pressed::Nothing
    }
}

impl Screen<'_> {
    /// Returns at most `height` lines, none wider than `width`.
    pub(super) fn lines(&self, width: usize, height: usize) -> Vec<String> {
        let mut lines = self.header();
        let limits = self.limits(width);
        let keys = self.keys(width);
        // Limits get half of the lines, and more if keys need fewer.
        let room = height.saturating_sub(lines.len() + 4);
        let for_keys = keys.len().min((room / 2).max(room.saturating_sub(limits.len())));
        lines.push(String::new());
        lines.push(row(width, "LIMIT", "MODE", &["ADMIT/S", "REFUSE/S", "SHADOW/S", "FAIL/S"]));
        lines.extend(limits.into_iter().take(room.saturating_sub(for_keys)));
        lines.push(String::new());
        lines.push(self.keys_heading());
        lines.extend(keys.into_iter().take(for_keys));
        let cut = |line: String| line.chars().take(width).collect::<String>().trim_end().to_owned();
        let mut lines: Vec<String> = lines.into_iter().map(cut).collect();
        if height < usize::MAX {
            lines.truncate(height.saturating_sub(1));
            lines.resize(height.saturating_sub(1), String::new());
            lines.push(cut(self.help()));
        }
        lines
    }

    fn header(&self) -> Vec<String> {
        let data = &self.figures.data;
        let is_ready = match data["ready"].as_bool() {
            Some(true) => "ready",
            Some(false) => "NOT READY",
            None => "connecting",
        };
        let time = data["time"].as_str().and_then(|time| time.get(11..19)).unwrap_or_default();
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let store = &data["store"];
        let mut about = match store["kind"].as_str() {
            Some("memory") => format!("store memory, {} keys", number(&store["keys"])),
            Some(kind) if store["breaker_open"] == true => format!("store {kind}, BREAKER OPEN"),
            Some(kind) => format!("store {kind}, breaker closed"),
            None => String::new(),
        };
        let errors: u64 =
            store["errors"].as_object().into_iter().flatten().map(|(_, n)| number(n)).sum();
        if errors > 0 {
            about.push_str(&format!(", {errors} errors"));
        }
        if let Some(leases) = data["leases"].as_object() {
            about.push_str(&format!(", leases hold {} units", number(&leases["held"])));
        }
        let [admitted, refused, shadow, failure] = self.rates.totals().map(figure);
        let mut lines = vec![
            format!("tollgate {}  {is_ready}  {time} UTC  {about}", self.authority),
            format!(
                "admitted {admitted}/s  refused {refused}/s  shadow-refused {shadow}/s  by failure policy {failure}/s"
            ),
        ];
        let problems = data["problems"].as_object().into_iter().flatten();
        lines.extend(problems.take(3).map(|(subject, text)| {
            format!("! {subject}: {}", plain(text.as_str().unwrap_or_default()))
        }));
        lines
    }

    fn limits(&self, width: usize) -> Vec<String> {
        let mut limits: Vec<(&str, &str)> = self
            .figures
            .limits()
            .map(|limit| {
                (limit["name"].as_str().unwrap_or(""), limit["mode"].as_str().unwrap_or(""))
            })
            .filter(|(name, _)| name.contains(&*self.view.filter))
            .collect();
        match self.view.sort {
            SortBy::Name => limits.sort(),
            sort => limits.sort_by(|a, b| {
                let rate = |name: &str| self.rates.of(name)[sort as usize];
                rate(b.0).cmp(&rate(a.0)).then(a.0.cmp(b.0))
            }),
        }
        let line = |(name, mode): (&str, &str)| {
            let rates = self.rates.of(name).map(figure);
            row(width, &plain(name), mode, &rates.each_ref().map(String::as_str))
        };
        let lines: Vec<String> = limits.into_iter().map(line).collect();
        if lines.is_empty() { vec!["(no limits)".to_owned()] } else { lines }
    }

    fn keys_heading(&self) -> String {
        let by = match self.view.by {
            Measure::Refused => "UNITS REFUSED",
            Measure::Admitted => "UNITS ADMITTED",
            Measure::Near => "UNITS NEAR THE LIMIT",
            Measure::Shadow => "UNITS SHADOW-REFUSED",
        };
        let window = match self.view.window {
            Window::Minute => "MINUTE",
            Window::Hour => "HOUR",
        };
        format!("TOP KEYS BY {by}, LAST {window}")
    }

    fn keys(&self, width: usize) -> Vec<String> {
        let mut keys: Vec<(u64, &str, &Value)> = Vec::new();
        for limit in self.top["limits"].as_array().into_iter().flatten() {
            let name = limit["name"].as_str().unwrap_or_default();
            let of_limit = limit["keys"].as_array().into_iter().flatten();
            keys.extend(of_limit.map(|key| (key["units"].as_u64().unwrap_or_default(), name, key)));
        }
        keys.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        // Units, usage and the name of the limit have fixed columns; keys get the rest.
        let key_width = width.saturating_sub(10 + 2 + 16 + 2 + 20 + 1).max(20);
        let line = |(units, name, key): (u64, &str, &Value)| {
            let text = key_text(&key["key"]);
            if !text.contains(&*self.view.filter) && !name.contains(&*self.view.filter) {
                return None;
            }
            let number = |name: &str| key[name].as_u64().unwrap_or_default();
            let used = number("limit").saturating_sub(number("remaining"));
            let used = format!("{used} of {}", number("limit"));
            let text = fit(&text, key_width);
            Some(format!("{units:>10}  {used:<16}  {:<20} {text}", fit(&plain(name), 20)))
        };
        let lines: Vec<String> = keys.into_iter().filter_map(line).collect();
        if lines.is_empty() {
            return vec!["(none)".to_owned()];
        }
        let heading = format!("{:>10}  {:<16}  {:<20} KEY", "UNITS", "USED", "LIMIT");
        std::iter::once(heading).chain(lines).collect()
    }

    fn help(&self) -> String {
        if self.view.is_typing {
            return format!("filter: {}_  Enter keeps it, Escape ends it", self.view.filter);
        }
        let filter = match &*self.view.filter {
            "" => "/ filter".to_owned(),
            filter => format!("/ filter ({filter})"),
        };
        format!("q quit   sort: r a s f n   k keys by   w window   {filter}")
    }
}

/// Formats a row of the table of limits.
fn row(width: usize, name: &str, mode: &str, rates: &[&str; COLUMNS.len()]) -> String {
    // Mode and four rates take 46 columns.
    let name_width = width.saturating_sub(46).clamp(12, 40);
    let mut line = format!("{:<name_width$} {mode:<8}", fit(name, name_width));
    rates.iter().for_each(|rate| line.push_str(&format!(" {rate:>8}")));
    line
}

/// Shortens the text to the width, with an ellipsis.
fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{start}…")
}

/// Formats a rate in thousandths per second, with the significant digits only.
fn figure(milli: u64) -> String {
    match milli {
        0 => "0".to_owned(),
        1..10_000 => format!("{}.{:02}", milli / 1_000, milli % 1_000 / 10),
        10_000..100_000 => format!("{}.{}", milli / 1_000, milli % 1_000 / 100),
        100_000..1_000_000_000 => (milli / 1_000).to_string(),
        _ => format!("{}.{}M", milli / 1_000_000_000, milli % 1_000_000_000 / 100_000_000),
    }
}

#[cfg(test)]
mod tests;
