//! Query parameters of calls: each name is known and occurs once.

use crate::front::problem::Problem;
use tollgate_policy::hex::percent_decode;

/// The parameters of a call.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query. Its parameters must be in `known`, unless `known` is empty.
    pub(super) fn parse(query: Option<&str>, known: &[&str]) -> Result<Self, Problem> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let decode = |text: &str| percent_decode(&text.replace('+', " "));
            let (Some(name), Some(value)) = (decode(name), decode(value)) else {
                return Err(Problem::bad("query", "the query is not percent-encoded UTF-8"));
            };
            if !known.is_empty() && !known.contains(&&*name) {
                let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                let detail = format!("unknown parameter; the parameters are {}", known.join(", "));
                return Err(Problem::bad(&name, detail));
            }
            if parameters.iter().any(|(other, _)| *other == name) {
                return Err(Problem::bad(&name, "the parameter is there twice"));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    /// Takes a parameter.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(place).1)
    }

    /// Takes a parameter that is one of `choices`; the first choice if it is absent.
    pub(super) fn take_word<T: Copy>(
        &mut self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<T, Problem> {
        let word = self.take(name);
        let is_it = |(known, _): &&(&str, T)| word.as_deref().is_none_or(|word| word == *known);
        choices.iter().find(is_it).map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<String> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
            Problem::bad(name, format!("unknown value; use one of {}", words.join(", ")))
        })
    }

    /// The parameters not taken.
    pub(super) fn into_rest(self) -> Vec<(String, String)> {
        self.0
    }
}

#[cfg(test)]
mod tests;
