//! Arguments that name logs and their formats.

use crate::command::Stop;
use std::path::PathBuf;
use tollgate_logs::{FORMATS, Field, LogZone, Logs, ReadOptions, find_format};

/// The access logs, and how to read them.
#[derive(clap::Args)]
pub(crate) struct LogArguments {
    /// The format of the logs, or of the output; repeatable, for both
    ///
    /// Logs: nginx, apache, caddy, envoy, haproxy, traefik, alb, cloudfront, tollgate, csv, or auto
    /// (the default), which detects the format of each file by its first lines. Output: table (the
    /// default) or json.
    #[arg(long, value_name = "FORMAT", value_parser = FormatFlag::parse)]
    format: Vec<FormatFlag>,

    /// The format of lines as in nginx's `log_format`: '$remote_addr [$time_local] "$request"'
    #[arg(long, value_name = "TEMPLATE")]
    log_format: Option<String>,

    /// Read an attribute from a column, a JSON member or a variable: api_key=COLUMN; repeatable
    #[arg(long, value_name = "NAME=COLUMN", value_parser = parse_column)]
    attribute: Vec<(String, String)>,

    /// The time zone of timestamps without one, such as Europe/Berlin; by default UTC
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
}

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OutputForm {
    #[default]
    Table,
    Json,
}

/// A value of `--format`: the format of the logs or of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormatFlag {
    Log(Option<&'static str>),
    Output(OutputForm),
}

impl FormatFlag {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "json" => Ok(Self::Output(OutputForm::Json)),
            "table" => Ok(Self::Output(OutputForm::Table)),
            "auto" => Ok(Self::Log(None)),
            text => match find_format(text) {
                Some(format) => Ok(Self::Log(Some(format.name))),
                None => {
                    let mut names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
                    names.sort_unstable();
                    let names = names.join(", ");
                    Err(format!("logs are auto, {names}; output is table or json"))
                }
            },
        }
    }
}

fn parse_column(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, column)) if !name.is_empty() && !column.is_empty() => {
            Ok((name.to_owned(), column.to_owned()))
        }
        _ => Err("write NAME=COLUMN, such as api_key=key".into()),
    }
}

impl LogArguments {
    /// The output format.
    pub(crate) fn output(&self) -> OutputForm {
        let mut forms = self.format.iter().filter_map(|flag| match flag {
            FormatFlag::Output(form) => Some(*form),
            FormatFlag::Log(_) => None,
        });
        forms.next_back().unwrap_or_default()
    }

    /// Returns the options for reading the logs, for a policy that uses these attributes.
    pub(crate) fn options(&self, attributes: &[String]) -> Result<ReadOptions, Stop> {
        let mut options = ReadOptions::new(attributes.to_vec(), self.attribute.clone());
        options.template.clone_from(&self.log_format);
        if let Some(zone) = &self.time_zone {
            options.zone = LogZone::parse(zone)
                .map_err(|why| Stop::Unusable(format!("--time-zone: {why}")))?;
        }
        Ok(options)
    }

    /// Opens the logs.
    pub(crate) fn open(
        &self,
        paths: &[PathBuf],
        options: ReadOptions,
        fields: &[Field],
    ) -> Result<Logs, Stop> {
        let mut named = self.format.iter().filter_map(|flag| match flag {
            FormatFlag::Log(name) => Some(*name),
            FormatFlag::Output(_) => None,
        });
        // A template implies nginx, unless another format is given.
        let default = self.log_format.as_ref().map(|_| "nginx");
        let format = named.next_back().flatten().or(default).and_then(find_format);
        Ok(Logs::open(paths, format, options, fields)?)
    }
}
