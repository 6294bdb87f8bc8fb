//! Conditions and variables of Limitador: those that name a descriptor's entry, and compare it with
//! a text.

/// An entry of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DescriptorEntry {
    /// Which descriptor of a call: here each is by itself.
    pub(super) descriptor: Option<String>,
    pub(super) key: String,
}

/// An entry, whether it has to be equal, and to what.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LimitadorCondition {
    pub(super) entry: DescriptorEntry,
    pub(super) is_equal: bool,
    pub(super) value: String,
}

/// All conditions of an expression that are joined by `&&`; `None` where it says more than that.
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
    // A star would be a pattern here, and nothing is missing from what is empty.
    if value.is_empty() || value.contains('*') {
        return None;
    }
    Some(LimitadorCondition { entry: variable(left)?, is_equal, value: value.to_owned() })
}

/// The entry that a variable names: `descriptors[0]['user']`, `descriptors[0].user`, or `user`, as
/// it was before.
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
