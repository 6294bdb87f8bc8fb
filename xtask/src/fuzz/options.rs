//! The command line of `cargo xtask fuzz`.

use crate::Failure;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct FuzzOptions {
    /// The time for each target.
    pub(super) seconds: u64,
    /// The random seed; by default a random one.
    pub(super) seed: Option<u32>,
    /// The targets to run; all if empty.
    pub(super) only: Vec<String>,
}

impl FuzzOptions {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut options = Self { seconds: 60, seed: None, only: Vec::new() };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let value =
                rest.next().ok_or_else(|| Failure::Usage(format!("`{name}` lacks a value")))?;
            match name.as_str() {
                "--only" => options.only.push(value.clone()),
                "--seed" => match value.parse() {
                    // libFuzzer takes zero for "no seed".
                    Ok(seed @ 1..) => options.seed = Some(seed),
                    _ => return Err(Failure::Usage(format!("`{value}` is not a seed"))),
                },
                "--seconds" => {
                    options.seconds = value.parse().map_err(|_| {
                        Failure::Usage(format!("`{value}` is not a number of seconds"))
                    })?;
                }
                _ => return Err(Failure::Usage(format!("unexpected argument `{name}`"))),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options() {
        let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        assert_eq!(
            FuzzOptions::parse(&words("")),
            Ok(FuzzOptions { seconds: 60, seed: None, only: vec![] })
        );
        assert_eq!(
            FuzzOptions::parse(&words("--only headers --seconds 5 --seed 7 --only body")),
            Ok(FuzzOptions { seconds: 5, seed: Some(7), only: words("headers body") })
        );
        assert!(FuzzOptions::parse(&words("--seconds")).is_err());
        assert!(FuzzOptions::parse(&words("--seconds soon")).is_err());
        assert!(FuzzOptions::parse(&words("--seed 0")).is_err());
        assert!(FuzzOptions::parse(&words("--forever yes")).is_err());
    }
}
