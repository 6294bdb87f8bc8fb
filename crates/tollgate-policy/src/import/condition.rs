//! Conditions and variables of Limitador: those that compare a descriptor entry with a text.

/// A reference to an entry of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DescriptorEntry {
    /// The index of the descriptor. In Limitador a limit may read several; here each is decided
    /// alone.
    pub(super) descriptor: Option<String>,
    pub(super) key: String,
}

/// A comparison of an entry with a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LimitadorCondition {
    pub(super) entry: DescriptorEntry,
    pub(super) is_equal: bool,
    pub(super) value: String,
}

/// Parses conditions that are joined by `&&`; `None` if the expression has anything else.
pub(super) fn conditions(text: &str) -> Option<Vec<LimitadorCondition>> {
    if text.contains("||") {
        return None;
    }
    text.split("&&").map(condition).collect()
}

fn condition(text: &str) -> Option<LimitadorCondition> {
    let (left, is_equal, right) = match text.split_once("==") {
        Some((left, right)) => (left, true, right),
        None => {
            let (left, right) = text.split_once("!=")?;
            (left, false, right)
        }
    };
    let value = quoted(right)?;
    // A star would be a wildcard in `match`. An empty value counts as absent.
    if value.is_empty() || value.contains('*') {
        return None;
    }
    Some(LimitadorCondition { entry: variable(left)?, is_equal, value: value.to_owned() })
}

/// Parses the entry that a variable names: `descriptors[0]['user']`, `descriptors[0].user`, or the
/// older `user`.
pub(super) fn variable(text: &str) -> Option<DescriptorEntry> {
    let text = text.trim();
    let mut descriptor = None;
    let key = match text.strip_prefix("descriptors[") {
        Some(rest) => {
            let (index, rest) = rest.split_once(']')?;
            if index.is_empty() || !index.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            descriptor = Some(index.trim_start_matches('0').to_owned());
            match rest.strip_prefix('.') {
                Some(name) => name,
                None => quoted(rest.strip_prefix('[')?.strip_suffix(']')?)?,
            }
        }
        None => text,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let is_name = !key.is_empty() && key.len() <= 100 && key.chars().all(is_plain);
    is_name.then(|| DescriptorEntry { descriptor, key: key.to_owned() })
}

fn quoted(text: &str) -> Option<&str> {
    let text = text.trim();
    let within = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
    within('\'').or_else(|| within('"')).filter(|text| !text.contains(['\'', '"', '\\']))
}
